"""What a search costs, in CPU time: with a lexicon and a language model, and by steps in one graph or in a loop.

The outputs of a CTC network are made up: words of a list, a symbol a frame with blanks between, and as unsure as a
network is that reads `--accuracy` of the symbols right. So the figures depend on no model, and neither do they say
anything about accuracy: `glyphline transcribe --references` measures that on labelled strips.

The steps are those of a shipped model, or of any bundle with a fused graph, on real strips. The fused graph and the
loop over the step take turns with the same encoded strips, and change who goes first; a ratio is formed inside each
round, and the median of the rounds is shown. Above 1 the graph is the faster.

    python benchmarks/decode.py
    python benchmarks/decode.py --words /usr/share/dict/words --beam-width 20 --json
    python benchmarks/decode.py --model my/bundle --batch 1 64 --rounds 25

Without `--words` the list is made up too, of syllables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine, print_report
from numpy.typing import NDArray
from rich.table import Table
from strips import STRIPS, load_strips

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding import CharacterModel, DecodingOptions, Lexicon, decode_ctc
from glyphline.models.decoding.distributions import log_softmax
from glyphline.models.heads import StepHead, open_head
from glyphline.models.image import ImageSettings, normalise, read_image
from glyphline.models.manifest import DecoderDefaults
from glyphline.models.recognizer import bucket_width, load_recognizer
from glyphline.models.timings import StageTimings
from glyphline.training.language_model import count_and_smooth, write_arpa

ALPHABET = Alphabet("abcdefghijklmnopqrstuvwxyz")
IMAGES = 64
"""Strips that a step-wise head reads in a round."""

_DEFAULTS = DecoderDefaults(name="greedy", beam_width=1, length_penalty=0.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one kind of search came to.

    Attributes:
        search: Its name.
        milliseconds: CPU time an image, median of the rounds.
        ratio: That over the plain beam search's of the same round, median.
        exact: Share of the words that were read right: of made-up outputs, only to show that the search does its job.
    """

    search: str
    milliseconds: float
    ratio: float
    exact: float


def made_up_words(count: int, random: np.random.Generator) -> list[str]:
    """Makes up words of syllables."""
    syllables = [consonant + vowel for consonant in "bcdfghklmnprstvwz" for vowel in "aeiou"]
    words: set[str] = set()
    while len(words) < count:
        words.add("".join(random.choice(syllables, random.integers(2, 6))) + random.choice(["", "n", "s", "r", "t"]))
    return sorted(words)


def made_up_outputs(
    words: list[str], accuracy: float, random: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Makes up log-probabilities (images, frames, symbols) and lengths (images)."""
    frames = 2 * max(map(len, words)) + 1
    logits = random.normal(0.0, 1.0, (len(words), frames, ALPHABET.size))
    logits[:, :, 0] += 9.0
    for image, word in enumerate(words):
        for place, symbol in enumerate(ALPHABET.encode(word)):
            read = symbol if random.random() < accuracy else int(random.integers(1, ALPHABET.size))
            logits[image, 2 * place + 1] = random.normal(0.0, 1.5, ALPHABET.size)
            logits[image, 2 * place + 1, symbol] += 3.5
            logits[image, 2 * place + 1, read] += 3.0
    return log_softmax(logits).astype(np.float32), np.array([2 * len(word) + 1 for word in words])


def measure(words: list[str], images: int, order: int, width: int, rounds: int, accuracy: float) -> list[Figures]:
    """Times each search, round after round."""
    random = np.random.default_rng(1)
    wanted = [words[place] for place in random.integers(0, len(words), images)]
    outputs, lengths = made_up_outputs(wanted, accuracy, random)
    with tempfile.TemporaryDirectory() as folder:
        write_arpa(count_and_smooth(words, order), Path(folder, "model.arpa"))
        model = CharacterModel.read(Path(folder, "model.arpa"))
    lexicon = Lexicon(words)
    guides: dict[str, dict[str, Any]] = {
        "beam": {},
        f"lexicon of {len(words):,} words": {"lexicon": lexicon},
        f"{order}-gram model of {len(model):,} n-grams": {"language_model": model},
        "both": {"lexicon": lexicon, "language_model": model},
    }
    searches = {
        name: DecodingOptions("beam", width, **guide).resolve(ALPHABET, _DEFAULTS, 64) for name, guide in guides.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    exact: dict[str, float] = {}
    for _ in range(rounds + 1):  # the first fills caches and is not counted
        for name, options in searches.items():
            start = time.process_time()
            found = decode_ctc(outputs, lengths, options)
            seconds[name].append(time.process_time() - start)
            texts = [ALPHABET.decode(hypotheses[0].symbols) for hypotheses in found]
            exact[name] = sum(map(str.__eq__, texts, wanted)) / images
    return [
        Figures(
            search=name,
            milliseconds=statistics.median(times[1:]) / images * 1e3,
            ratio=statistics.median(mine / plain for mine, plain in zip(times[1:], seconds["beam"][1:], strict=True)),
            exact=exact[name],
        )
        for name, times in seconds.items()
    ]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """What the searches of a step-wise head came to; times are medians over the rounds, an image.

    Attributes:
        batch: Images in a run.
        beam_width: Of the search; 1 is the greedy one.
        encoder_milliseconds: CPU time of the encoder, which both ways share.
        loop_milliseconds: Of the loop over the step.
        fused_milliseconds: Of the fused graph, with what is done about its outputs.
        ratio: The loop's over the fused graph's.
        whole_ratio: The same with the encoder's added to both.
    """

    batch: int
    beam_width: int
    encoder_milliseconds: float
    loop_milliseconds: float
    fused_milliseconds: float
    ratio: float
    whole_ratio: float


def make_batches(
    contents: list[bytes], size: int, settings: ImageSettings
) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Makes batches (batch, 1, height, width) and widths (batch) of images that are ordered by width.

    Batches are not cut where a bucket ends, as the recogniser would cut them: all are full, and texts of several
    lengths share one, which is what the loop is good at: rows that have ended leave it.
    """
    batches = []
    for begin in range(0, len(contents) - size + 1, size):
        strips = [normalise(read_image(content), settings) for content in contents[begin : begin + size]]
        widths = np.array([strip.shape[1] for strip in strips], dtype=np.int64)
        images = np.zeros((size, 1, settings.height, bucket_width(int(widths.max()))), dtype=np.uint8)
        for image, strip in zip(images, strips, strict=True):
            image[0, :, : strip.shape[1]] = strip
        batches.append((images, widths))
    return batches


def measure_steps(model: str, data: Path, batch: int, width: int, rounds: int) -> StepFigures:
    """Times the fused graph and the loop on the same encoded strips."""
    recognizer = load_recognizer(model)
    bundle, alphabet = recognizer.bundle, recognizer.alphabet
    if "decode" not in bundle.manifest.graphs:
        raise SystemExit(f"{bundle.path} has no fused graph")
    head = open_head(bundle, alphabet, "cpu", 1, allow_cpu_fallback=False)
    assert isinstance(head, StepHead)
    options = DecodingOptions("beam", width).resolve(
        alphabet, bundle.manifest.decoder, bundle.manifest.max_output_length
    )
    batches = make_batches(load_strips(data, max(IMAGES, batch), bundle.manifest.image), batch, bundle.manifest.image)
    images = sum(len(widths) for _, widths in batches)
    timings = StageTimings()
    spent: dict[str, list[float]] = {"encoder": [], "loop": [], "fused": []}
    for turn in range(rounds + 1):
        start = time.process_time()
        encoded = [head.encode(*one, timings) for one in batches]
        spent["encoder"].append(time.process_time() - start)
        for name in ("loop", "fused")[:: 1 if turn % 2 else -1]:
            start = time.process_time()
            for one in encoded:
                head.decode(one, options, 1.0, timings, fused=name == "fused")
            spent[name].append(time.process_time() - start)
    encoder, by_loop, by_graph = (np.array(times[1:]) / images for times in spent.values())  # the first warms up
    return StepFigures(
        batch=batch,
        beam_width=width,
        encoder_milliseconds=float(np.median(encoder)) * 1e3,
        loop_milliseconds=float(np.median(by_loop)) * 1e3,
        fused_milliseconds=float(np.median(by_graph)) * 1e3,
        ratio=float(np.median(by_loop / by_graph)),
        whole_ratio=float(np.median((encoder + by_loop) / (encoder + by_graph))),
    )


def main() -> None:
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=Path, help="file of one word a line; a to z of them are used")
    parser.add_argument("--count", type=int, default=100_000, help="made-up words, without --words (default: 100000)")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--order", type=int, default=6, help="of the language model (default: 6)")
    parser.add_argument("--beam-width", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="digits", help="name or folder of a bundle with a fused graph")
    parser.add_argument("--data", type=Path, default=STRIPS, help="folder of strips for it")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32], help="images in a run (default: 1 8 32)")
    parser.add_argument("--accuracy", type=float, default=0.9, help="share of symbols read right (default: 0.9)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.words is None:
        words = made_up_words(arguments.count, np.random.default_rng(0))
    else:
        lines = (line.strip().lower() for line in arguments.words.read_text(encoding="utf-8").splitlines())
        words = sorted({line for line in lines if line and not ALPHABET.unknown_characters(line)})
    figures = measure(
        words, arguments.images, arguments.order, arguments.beam_width, arguments.rounds, arguments.accuracy
    )
    steps = [
        measure_steps(arguments.model, arguments.data, batch, width, arguments.rounds)
        for width in (1, arguments.beam_width)
        for batch in arguments.batch
    ]
    machine = describe_machine()
    if arguments.json:
        record = {"figures": [asdict(row) for row in figures], "steps": [asdict(row) for row in steps]}
        print(json.dumps({"machine": machine, **record}))
        return
    table = Table(title=f"CTC search of width {arguments.beam_width}, {arguments.images} images")
    for heading in ("search", "CPU ms an image", "against the plain beam", "exact"):
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for row in figures:
        table.add_row(row.search, f"{row.milliseconds:.2f}", f"{row.ratio:.1f}×", f"{row.exact:.1%}")
    print_report(table, machine)
    table = Table(title=f"steps of {arguments.model}: CPU ms an image")
    for heading in ("batch", "beam width", "encoder", "loop", "fused graph", "loop / graph", "with the encoder"):
        table.add_column(heading, justify="right")
    for each in steps:
        table.add_row(
            str(each.batch),
            str(each.beam_width),
            f"{each.encoder_milliseconds:.2f}",
            f"{each.loop_milliseconds:.3f}",
            f"{each.fused_milliseconds:.3f}",
            f"{each.ratio:.2f}×",
            f"{each.whole_ratio:.3f}×",
        )
    print_report(table, machine)


if __name__ == "__main__":
    main()
