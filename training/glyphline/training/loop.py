"""The training loop: a Lightning module, its data, checkpoints at the end of every epoch, exact resume, curves.

A run is a folder: `config.toml` as given, `checkpoints/last.ckpt` and the best one, `metrics.csv`, `curves.png`. An
epoch is a few minutes of strips that no other epoch sees; its randomness follows from the seed and the epoch's number
alone, so a run that is stopped and resumed from an epoch's end is the run that was never stopped.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback, EarlyStopping, ModelCheckpoint, TQDMProgressBar
from torch import Tensor
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, IterableDataset

from glyphline.models.alphabet import Alphabet
from glyphline.models.error_rate import evaluate_pairs
from glyphline.models.session import available_threads
from glyphline.training.config import TrainingConfig, read_config
from glyphline.training.curves import draw_curves
from glyphline.training.datasets.batches import Batch, collate, draw_pool, encode_sample, split_pool
from glyphline.training.datasets.build import build_set, build_source, check_source_labels
from glyphline.training.datasets.samples import SampleSource
from glyphline.training.errors import TrainingError
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.networks.attention import attention_loss
from glyphline.training.networks.ctc import ctc_loss, needed_frames
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.vocabulary import ALPHABET_NAME, run_alphabet

logger = logging.getLogger(__name__)

POOL = 1024
"""Strips made at a time and cut into batches of equal width."""


def learning_rate_factor(progress: float, warm_up: float, decay: float) -> float:
    """Warm-up, a plateau, then a cosine down to a hundredth.

    Args:
        progress: Share of the run that is done, in [0, 1].
        warm_up: Share over which the rate rises from a hundredth.
        decay: Share at the end over which it falls.

    Returns:
        Factor of the peak rate, in (0, 1].
    """
    if progress < warm_up:
        return 0.01 + 0.99 * progress / warm_up
    if progress > 1 - decay:
        return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - 1 + decay) / decay)))
    return 1.0


def has_bf16() -> bool:
    """Tells whether this processor multiplies bf16 numbers in hardware (AVX-512 BF16 or AMX)."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def to_tensors(batch: Batch) -> dict[str, Tensor]:
    """Turns a batch's arrays into tensors, by name."""
    return {
        "images": torch.from_numpy(batch.images),
        "widths": torch.from_numpy(batch.widths),
        "labels": torch.from_numpy(batch.labels),
        "label_lengths": torch.from_numpy(batch.label_lengths),
    }


class StripStream(IterableDataset[dict[str, Tensor]]):
    """The strips of one epoch in batches; pool `n` of the run is the same whichever process makes it."""

    def __init__(self, config: TrainingConfig, sources: list[SampleSource], epoch: int) -> None:
        super().__init__()
        self.config = config
        self.sources = sources
        self.epoch = epoch
        self.alphabet = config.make_alphabet()
        weights = np.array([source.weight for source in config.sources], np.float64)
        self.weights = weights / weights.sum()

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        """Yields the batches of this process's share of the pools."""
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        pools = max(1, self.config.loop.strips_per_epoch // POOL)
        for number in range(first, pools, step):
            seed = (self.config.seed, self.epoch * pools + number)
            size = min(POOL, self.config.loop.strips_per_epoch)
            pool = draw_pool(self.sources, self.weights, self.alphabet, self.config.image, seed, size)
            pool = [strip for strip in pool if self._feasible(strip.symbols, strip.pixels.shape[1])]
            for batch in split_pool(pool, self.config.loop.batch_columns, np.random.default_rng((*seed, 1))):
                yield to_tensors(batch)

    def _feasible(self, symbols: list[int], width: int) -> bool:
        """Tells whether CTC has enough frames for a label; a strip that is too narrow for its text teaches nothing."""
        return needed_frames(symbols) <= -(-width // 4) * self.config.network.frames_per_step


class RecogniserModule(lightning.LightningModule):
    """Losses, optimiser, running average of the weights, and validation without teacher forcing."""

    def __init__(self, config: TrainingConfig, validation: dict[str, list[tuple[Batch, list[str]]]]) -> None:
        super().__init__()
        self.config = config
        self.alphabet: Alphabet = config.make_alphabet()
        self.network = RecogniserNetwork(config.network, self.alphabet.size, config.image.height)
        self.network.to(memory_format=torch.channels_last)
        self.average = AveragedModel(self.network, avg_fn=self._average_step, use_buffers=True)
        self.average.requires_grad_(requires_grad=False)
        self.strips_seen: Tensor
        self.register_buffer("strips_seen", torch.zeros((), dtype=torch.long))
        self.validation = validation
        self.sums: dict[str, list[float]] = {}

    def averaged_network(self) -> RecogniserNetwork:
        """Returns the network with the averaged weights, which is what is validated and exported."""
        network = self.average.module
        assert isinstance(network, RecogniserNetwork)
        return network

    def _average_step(self, average: Tensor, current: Tensor, count: Tensor | int) -> Tensor:
        if not torch.is_floating_point(average):
            return current
        decay = min(self.config.loop.average_decay, (1 + int(count)) / (10 + int(count)))
        return torch.lerp(current, average, decay)

    def training_step(self, batch: dict[str, Tensor], index: int) -> Tensor:
        """Returns the loss of a batch.

        Raises:
            TrainingError: If the loss is not a number; the batch is saved beside the checkpoints.
        """
        loop = self.config.loop
        labels, lengths = batch["labels"], batch["label_lengths"]
        ctc, scores = self.network(batch["images"], batch["widths"], self._decoder_inputs(labels))
        parts: dict[str, Tensor] = {}
        if ctc is not None:
            parts["ctc"] = ctc_loss(ctc[0], ctc[1], labels, lengths)
        if scores is not None:
            parts["attention"] = attention_loss(scores, labels, lengths, loop.label_smoothing)
        weights = (
            {"ctc": loop.ctc_weight, "attention": 1 - loop.ctc_weight} if len(parts) == 2 else dict.fromkeys(parts, 1.0)
        )
        loss = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
        if not torch.isfinite(loss):
            path = Path(self.trainer.default_root_dir) / "not-finite-batch.pt"
            torch.save(batch, path)
            raise TrainingError(f"the loss is {float(loss)} at step {self.global_step}; the batch is saved in {path}")
        self.strips_seen += len(lengths)
        for name, part in {**parts, "loss": loss}.items():
            self.sums.setdefault(f"train_{name}", []).append(float(part.detach()))
        self.log("loss", loss.detach(), prog_bar=True, logger=False)
        return loss

    def _decoder_inputs(self, labels: Tensor) -> Tensor | None:
        """Start symbol and label `(batch, longest + 1)`; a few are replaced, as the decoder's own errors will be."""
        if self.network.decoder is None:
            return None
        start = torch.full_like(labels[:, :1], self.alphabet.start)
        masked = torch.rand(labels.shape) < self.config.loop.input_masking
        other = torch.randint_like(labels, 1, self.alphabet.size)
        return torch.cat((start, torch.where(masked, other, labels)), dim=1)

    def on_train_epoch_start(self) -> None:
        """Forgets the last epoch's losses."""
        self.sums = {}

    def on_train_batch_start(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Sets the learning rate from the share of the run that is done; an epoch's first batch seeds its randomness.

        Seeding any earlier would not do: what happens before an epoch's first batch differs after a resume.
        """
        loop = self.config.loop
        if batch_idx == 0:
            torch.manual_seed(self.config.seed * 1_000_003 + self.current_epoch)
        progress = float(self.strips_seen) / (loop.epochs * loop.strips_per_epoch)
        rate = loop.learning_rate * learning_rate_factor(progress, loop.warm_up, loop.decay)
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = rate

    def on_train_batch_end(self, outputs: object, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Moves the running average towards the new weights."""
        self.average.update_parameters(self.network)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW; norms and biases have no weight decay."""
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        vectors = [p for p in self.network.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": self.config.loop.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.config.loop.learning_rate, betas=(0.9, 0.98))

    def validation_step(self, batch: int, index: int) -> None:
        """Reads every validation set with every head, greedily and from its own outputs, and logs error rates."""
        network = self.averaged_network()
        rates: dict[str, list[float]] = {}
        for name, batches in self.validation.items():
            pairs: dict[str, list[tuple[str, str]]] = {}
            for arrays, texts in batches:
                tensors = to_tensors(arrays)
                longest = arrays.labels.shape[1] + 5
                for head, rows in network.read(tensors["images"], tensors["widths"], longest).items():
                    pairs.setdefault(head, []).extend(
                        (text, self.alphabet.decode(row)) for text, row in zip(texts, rows, strict=True)
                    )
            for head, read in pairs.items():
                result = evaluate_pairs(read)
                self.log(f"{name}_{head}_exact", result.exact, batch_size=1)
                self.log(f"{name}_{head}_cer", result.cer, batch_size=1)
                rates.setdefault(head, []).append(1 - result.exact)
        for head, values in rates.items():
            self.log(f"validation_{head}_error", float(np.mean(values)), batch_size=1)
        self.log(
            "validation_error",
            float(np.mean([np.mean(values) for values in rates.values()])),
            prog_bar=True,
            batch_size=1,
        )


class StripData(lightning.LightningDataModule):
    """Makes a new stream of strips for every epoch."""

    def __init__(self, config: TrainingConfig, sources: list[SampleSource]) -> None:
        super().__init__()
        self.config = config
        self.sources = sources

    def train_dataloader(self) -> DataLoader[dict[str, Tensor]]:
        """Returns the batches of the current epoch."""
        epoch = self.trainer.current_epoch if self.trainer is not None else 0
        workers = self.config.loop.workers
        return DataLoader(
            StripStream(self.config, self.sources, epoch),
            batch_size=None,
            num_workers=workers,
            prefetch_factor=32 if workers else None,
            worker_init_fn=_one_thread,
        )

    def val_dataloader(self) -> list[int]:
        """Validation runs over the sets that are in memory; Lightning only needs one turn."""
        return [0]


def _one_thread(worker: int) -> None:
    torch.set_num_threads(1)
    os.nice(5)


class RunLog(Callback):
    """Writes a row of figures after each epoch, and redraws the curves."""

    def __init__(self, metrics: MetricsLog, curves: Path) -> None:
        self.metrics = metrics
        self.curves = curves

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Adds the epoch's row."""
        assert isinstance(pl_module, RecogniserModule)
        row = {"epoch": float(trainer.current_epoch), "strips": float(pl_module.strips_seen)}
        row |= {name: float(np.mean(values)) for name, values in pl_module.sums.items()}
        row["learning_rate"] = float(trainer.optimizers[0].param_groups[0]["lr"])
        if (trainer.current_epoch + 1) % pl_module.config.loop.validate_every == 0:
            row |= {name: float(value) for name, value in trainer.callback_metrics.items() if name != "loss"}
        self.metrics.append(row)
        draw_curves(self.metrics.rows(), self.curves)
        logger.info(", ".join(f"{name} {value:.4g}" for name, value in row.items()))


def encode_validation(config: TrainingConfig, root: Path) -> dict[str, list[tuple[Batch, list[str]]]]:
    """Builds the validation sets, sorted by width into batches of 64.

    Raises:
        TrainingError: If a set has a strip that is too wide.
    """
    alphabet = config.make_alphabet()
    sets = {}
    for name, settings in config.validation.items():
        encoded = []
        for sample in build_set(settings, root):
            strip = encode_sample(sample, alphabet, config.image)
            if strip is None:
                raise TrainingError(f"validation set {name}: {sample.source} is wider than image.max_width")
            encoded.append((strip, sample.text))
        encoded.sort(key=lambda pair: pair[0].pixels.shape[1])
        parts = [encoded[start : start + 64] for start in range(0, len(encoded), 64)]
        sets[name] = [(collate([strip for strip, _ in part]), [text for _, text in part]) for part in parts]
    return sets


def take_weights(module: RecogniserModule, run: Path) -> list[str]:
    """Starts a network from the averaged weights of another run, as far as the two have the same tensors.

    Args:
        module: The network to be trained.
        run: Folder of the other run.

    Returns:
        Names of the tensors that keep their initial values: the other run lacks them, or has them of another shape.

    Raises:
        TrainingError: If the run has no checkpoint, or nothing in common with the network.
    """
    _, network, _ = load_network(run)
    there = network.state_dict()
    here = module.network.state_dict()
    common = {name: there[name] for name, own in here.items() if name in there and there[name].shape == own.shape}
    if not common:
        raise TrainingError(f"the network of {run} has nothing in common with this one")
    module.network.load_state_dict(common, strict=False)
    module.averaged_network().load_state_dict(module.network.state_dict())
    return sorted(set(here) - set(common))


def train(
    config_path: Path, data_root: Path, output: Path, resume: bool = True, start_from: Path | None = None
) -> None:
    """Trains a recogniser.

    Args:
        config_path: TOML configuration.
        data_root: Folder below which the configuration's paths lie.
        output: Folder of the run; made where it does not exist.
        resume: Go on from the run's last checkpoint where there is one.
        start_from: Folder of another run whose weights a new run starts from; see `take_weights`.

    Raises:
        TrainingError: If the configuration or the data do not fit, the run was made with another configuration, or the
            loss stops being a number.
        AlphabetError: If a label has characters outside the alphabet; all are named with their lines.
    """
    config = read_config(config_path)
    if not resume:
        (output / ALPHABET_NAME).unlink(missing_ok=True)
    labels = [check_source_labels(source, data_root) for source in config.sources]
    alphabet = run_alphabet(config, output, [text for part in labels for _, text in part])
    config = config.with_alphabet(alphabet)
    for part in labels:
        alphabet.check_labels(part)
    output.mkdir(parents=True, exist_ok=True)
    last = output / "checkpoints" / "last.ckpt"
    if not resume:
        shutil.rmtree(output / "checkpoints", ignore_errors=True)
        (output / "metrics.csv").unlink(missing_ok=True)
    kept = output / "config.toml"
    if last.exists() and kept.exists():
        before = read_config(kept)
        same = {"loop", "licence", "data"}  # how long and how fast may change; what is trained may not
        if before.with_alphabet(alphabet).model_dump(exclude=same) != config.model_dump(exclude=same):
            raise TrainingError(
                f"{output} was begun with another configuration ({kept}): choose another --output, or --fresh"
            )
    if config_path.resolve() != kept.resolve():
        shutil.copyfile(config_path, kept)

    torch.set_num_threads(available_threads())  # torch counts physical cores, and not those that it may use
    torch.manual_seed(config.seed)
    module = RecogniserModule(config, encode_validation(config, data_root))
    if start_from is not None and not (resume and last.exists()):
        new = take_weights(module, start_from)
        logger.info("starting from the weights of %s; new are: %s", start_from, ", ".join(new) or "none")
    data = StripData(config, [build_source(source, data_root) for source in config.sources])
    precision = config.loop.precision
    bf16 = precision == "bf16" or (precision == "auto" and has_bf16())
    callbacks: list[Callback] = [
        # Both at the very end of an epoch: a checkpoint from within one would not resume to the same run.
        ModelCheckpoint(
            output / "checkpoints",
            "best-{epoch:03d}",
            monitor="validation_error",
            every_n_epochs=config.loop.validate_every,
            save_on_train_epoch_end=True,
        ),
        ModelCheckpoint(
            output / "checkpoints", "last", enable_version_counter=False, every_n_epochs=1, save_on_train_epoch_end=True
        ),
        RunLog(MetricsLog(output / "metrics.csv"), output / "curves.png"),
        TQDMProgressBar(refresh_rate=20),
    ]
    if config.loop.patience:
        callbacks.append(EarlyStopping("validation_error", patience=config.loop.patience))
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=config.loop.epochs,
        precision="bf16-mixed" if bf16 else "32-true",
        gradient_clip_val=config.loop.clip,
        check_val_every_n_epoch=config.loop.validate_every,
        num_sanity_val_steps=0,
        reload_dataloaders_every_n_epochs=1,
        default_root_dir=output,
        logger=False,
        callbacks=callbacks,
        enable_model_summary=False,
    )
    trainer.fit(module, data, ckpt_path=str(last) if resume and last.exists() else None, weights_only=False)


def load_network(
    run: Path, which: Callable[[Path], Path] | None = None
) -> tuple[TrainingConfig, RecogniserNetwork, int]:
    """Loads the averaged network of a run, ready for evaluation.

    Args:
        run: Folder of the run.
        which: Chooses the checkpoint from the run's folder; the last one where it is not given.

    Returns:
        Configuration, network, and the number of strips it has seen.

    Raises:
        TrainingError: If the run has no checkpoint.
    """
    config = read_config(run / "config.toml")
    config = config.with_alphabet(run_alphabet(config, run))
    path = which(run) if which is not None else run / "checkpoints" / "last.ckpt"
    if not path.exists():
        raise TrainingError(f"{path} does not exist: {run} is not the folder of a training run")
    module = RecogniserModule(config, {})
    module.load_state_dict(torch.load(path, map_location="cpu", weights_only=False)["state_dict"])
    return config, module.averaged_network().eval(), int(module.strips_seen)
