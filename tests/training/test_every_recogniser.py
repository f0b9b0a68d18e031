"""Every head with every cell, on every kind of vocabulary: it learns, is exported, and reads as it did in torch."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.image import GreyImage, normalise
from glyphline.models.recognizer import Recognizer
from glyphline.service.client import Client
from glyphline.training import export
from glyphline.training.config import TrainingConfig
from glyphline.training.datasets.batches import Batch, collate, encode_sample
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import Sample
from glyphline.training.loop import load_network, train
from glyphline.training.loop.folder import Checkpoint
from glyphline.training.networks.ctc import ctc_loss
from glyphline.training.networks.decoder import decoder_loss
from glyphline.training.networks.encoder import StripEncoder
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.vocabulary import run_alphabet

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

LABELS = ["to be or", "or not", "not to be", "be", "to or to", "not or be to"]
LONGEST = 8

HEADS: dict[str, dict[str, object]] = {
    "ctc": {"heads": ["ctc"], "ctc_shortcut": True},
    "attention": {"heads": ["attention"]},
    "attention by content within reach": {"heads": ["attention"], "location_filters": 0, "attention_reach": 12},
    "attention with a state": {"heads": ["attention"], "carries_state": True, "attention_reach": 0},
    "flatten": {"heads": ["flatten"], "canvas_width": 128},
    "image-first once": {"heads": ["image-first"]},
    "image-first at every step": {"heads": ["image-first"], "image_every_step": True},
    "pooled-state": {"heads": ["pooled-state"]},
}
CELLS: dict[str, dict[str, object]] = {
    "rnn": {"vocabulary": {"kind": "characters"}},
    "gru": {"vocabulary": {"kind": "words"}},
    "lstm": {"vocabulary": {"kind": "subwords", "size": 14}},
}
SIZES: dict[str, object] = {
    "channels": [8, 8, 16, 16],
    "encoder_size": 16,
    "encoder_layers": 1,
    "decoder_size": 24,
    "attention_size": 16,
    "embedding_size": 16,
    "dropout": 0.0,
}


def make_config(network: dict[str, object], **settings: object) -> TrainingConfig:
    canvas = {"max_width": network["canvas_width"]} if "canvas_width" in network else {}
    return TrainingConfig.model_validate(
        {
            "name": "small",
            "max_output_length": LONGEST,
            "image": {"height": 16, **canvas},
            "network": SIZES | network,
            "sources": [{"kind": "real", "path": "texts"}],
            "validation": {"texts": {"kind": "folder", "path": "texts"}},
        }
        | settings
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with a folder of a few drawn texts."""
    root = tmp_path_factory.mktemp("root")
    (root / "texts").mkdir()
    font = ImageFont.load_default(20)
    for number, label in enumerate(LABELS):
        image = Image.new("L", (round(font.getlength(label)) + 8, 28), 255)
        ImageDraw.Draw(image).text((4, 2), label, fill=0, font=font)
        image.save(root / "texts" / f"{number}.png")
    (root / "texts" / "labels.tsv").write_text("".join(f"{n}.png\t{label}\n" for n, label in enumerate(LABELS)))
    return root


def learn(network: RecogniserNetwork, batch: Batch, steps: int) -> list[float]:
    """Takes steps on one batch; returns the loss at each."""
    images, widths = torch.from_numpy(batch.images), torch.from_numpy(batch.widths)
    labels, lengths = torch.from_numpy(batch.labels), torch.from_numpy(batch.label_lengths)
    inputs = torch.cat((torch.full_like(labels[:, :1], network.symbols), labels), dim=1)
    optimiser = torch.optim.Adam(network.parameters(), 5e-3)
    losses = []
    for _ in range(steps):
        outputs = network(images, widths, inputs, sampling=0.1, cut=3, encoder_cut=9)
        parts = [
            ctc_loss(each[0], each[1], labels, lengths) for each in (outputs.ctc, outputs.shortcut) if each is not None
        ]
        parts += [] if outputs.scores is None else [decoder_loss(outputs.scores, labels, lengths, 0.0)]
        loss = torch.stack(parts).sum()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # as torch has it
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimiser.step()
        losses.append(float(loss))
    return losses


def read_in_torch(network: RecogniserNetwork, config: TrainingConfig, sample: Sample) -> str:
    pixels = normalise(GreyImage(sample.pixels), config.image)
    padded = np.pad(pixels, ((0, 0), (0, -pixels.shape[1] % StripEncoder.WIDTH_MULTIPLE)))
    images, widths = torch.from_numpy(padded)[None, None], torch.tensor([pixels.shape[1]])
    [[symbols]] = network.read(images, widths, LONGEST).values()
    return config.make_alphabet().decode(symbols[:LONGEST])


def read_all(recognizer: Recognizer, samples: list[Sample], options: DecodingOptions) -> list[Reading]:
    readings = recognizer.recognize([GreyImage(sample.pixels) for sample in samples], options)
    assert all(isinstance(reading, Reading) for reading in readings)
    return [reading for reading in readings if isinstance(reading, Reading)]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("cell", CELLS)
def test_it_learns_is_exported_and_reads_the_same_everywhere(
    head: str, cell: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = {"encoder_cell": cell, "decoder_cell": cell, "decoder_layers": 2 if cell == "gru" else 1}
    config = make_config(HEADS[head] | layers | {"bidirectional": cell != "rnn"}, **CELLS[cell])
    alphabet = run_alphabet(config, tmp_path, LABELS)
    config = config.with_alphabet(alphabet)
    samples = build_set(config.validation["texts"], texts)
    strips = [strip for sample in samples if (strip := encode_sample(sample, alphabet, config.image))]
    torch.manual_seed(0)
    network = RecogniserNetwork(config.network, alphabet.size, config.image.height)
    losses = learn(network, collate(strips), 160 if head == "ctc" else 50)  # CTC writes nothing but blanks at first
    assert np.mean(losses[-5:]) < 0.75 * losses[0]
    network.eval()

    monkeypatch.setattr(export, "load_network", lambda run, which: (config, network, 1))
    checkpoint = Checkpoint(tmp_path / "last.ckpt", "last", 0, None)
    monkeypatch.setattr(export, "choose_checkpoint", lambda run, which: checkpoint)
    path = export.export_run(tmp_path, tmp_path / "models", "small", 1, None, texts)
    bundle = load_bundle(path)
    assert bundle.manifest.head == HEADS[head]["heads"][0]  # type: ignore[index]
    assert tuple(bundle.manifest.alphabet) == alphabet.symbols
    recognizer = Recognizer.load(bundle)
    greedy = read_all(recognizer, samples, DecodingOptions(decoder="greedy", token_details=True))
    assert [reading.text for reading in greedy] == [read_in_torch(network, config, sample) for sample in samples]
    assert any(reading.text for reading in greedy), "it has learnt to write something"
    # What the fused graph reads, the loop over the decoder's step reads, too.
    assert ("decode" in bundle.manifest.graphs) == (head != "ctc")
    loop = Recognizer.load(bundle.without("decode"))
    for decoder in ("greedy", "beam"):
        for allowed, longest in ((None, None), ("to be", 3)):
            options = DecodingOptions(decoder, 3, max_output_length=longest, allowed_characters=allowed)
            ours, theirs = read_all(recognizer, samples, options), read_all(loop, samples, options)
            for found, expected in zip(ours, theirs, strict=True):
                assert (found.text, found.truncated) == (expected.text, expected.truncated)
                assert found.confidence == pytest.approx(expected.confidence, abs=1e-5)
    narrow = read_all(recognizer, samples, DecodingOptions(decoder="beam", beam_width=1, token_details=True))
    assert narrow == greedy
    wide = read_all(recognizer, samples, DecodingOptions(decoder="beam", beam_width=4, token_details=True))
    for sample, together, beam in zip(samples, greedy, wide, strict=True):
        [alone] = read_all(recognizer, [sample], DecodingOptions(decoder="greedy", token_details=True))
        assert alone.text == together.text
        assert alone.confidence == pytest.approx(together.confidence, abs=1e-5)
        placed = [token.span is not None for token in [*together.alternatives[0].tokens, *beam.alternatives[0].tokens]]
        assert set(placed) <= {head == "ctc" or head.startswith("attention")}
        assert "".join(token.text for token in beam.alternatives[0].tokens) == beam.text


CONFIG = """
name = "words"
max_output_length = 8

[vocabulary]
kind = "words"

[image]
height = 16

[network]
heads = ["image-first"]
encoder = "mobilenet_v3_small"
encoder_layers = 0
decoder_size = 16

[loop]
epochs = {epochs}
strips_per_epoch = 64
batch_columns = 2048
workers = 0
validate_every = 1
precision = "fp32"

[[sources]]
kind = "real"
path = "texts"

[validation.texts]
kind = "folder"
path = "texts"
"""


def test_a_run_on_words_is_trained_resumed_exported_and_served(texts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for epochs in (1, 2):
        (tmp_path / "words.toml").write_text(CONFIG.format(epochs=epochs))
        train(tmp_path / "words.toml", texts, run)
    config, network, _ = load_network(run)
    assert set(config.make_alphabet().symbols) == {"to", "or", "not", "be", " to", " or", " not", " be"}
    bundle = load_bundle(export.export_run(run, tmp_path / "models", "words", 1, None, texts))
    assert bundle.manifest.head == "image-first"
    assert "` be`" in (bundle.path / "model_card.md").read_text()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GLYPHLINE_")}
    command = [sys.executable, "-m", "glyphline", "serve", "--model-repository", str(tmp_path / "models")]
    with subprocess.Popen(
        [*command, "--port", "0", "--metrics-port", "0", "--workers", "1"],
        stdout=subprocess.PIPE,
        env=environment | {"GLYPHLINE_DRAIN_SECONDS": "0"},
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            ready = re.search(r"127\.0\.0\.1:\d+", server.stdout.readline())
            assert ready
            samples = build_set(config.validation["texts"], texts)
            options = DecodingOptions(token_details=True)
            with Client(ready[0], timeout=60) as client:
                for number, sample in enumerate(samples):
                    result = client.recognize(texts / "texts" / f"{number}.png", options=options)
                    assert result.text == read_in_torch(network, config, sample)
                    assert all(token.span is None for token in result.alternatives[0].tokens)
            server.send_signal(signal.SIGTERM)
            assert server.wait() == 0
        finally:
            server.kill()
