"""The Lightning module: what a step, an epoch and a validation of a run do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from glyphline.models.alphabet import Alphabet
from glyphline.models.error_rate import evaluate_pairs
from glyphline.training.config import TrainingConfig
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.errors import DivergedError
from glyphline.training.loop.distributed import Processes, gather_from_processes, sum_over_processes
from glyphline.training.loop.losses import TensorBatch, head_losses, total_loss
from glyphline.training.loop.schedules import learning_rate, sampling_share
from glyphline.training.loop.stream import SKIPS, to_tensors
from glyphline.training.loop.validation import ValidationBatches, ValidationSets
from glyphline.training.networks.recogniser import RecogniserNetwork


class RecogniserModule(lightning.LightningModule):
    """Losses, optimiser, running average of the weights, and validation without teacher forcing.

    Attributes:
        network: The network that is trained.
        average: Running average of its weights, which is validated and exported.
        strips_seen: Strips that all processes together have trained on.
        sums: Losses of the epoch's batches in this process, by name.
        skips: Strips of the epoch that this process skipped.
        figures: Error rates of the last validation.
        free_rate: Whether something else than the schedule sets the learning rate, and losses may be anything.
    """

    def __init__(
        self,
        config: TrainingConfig,
        validation: ValidationSets | None = None,
        processes: Processes = Processes(),  # noqa: B008  (frozen)
    ) -> None:
        super().__init__()
        self.config = config
        self.processes = processes
        self.alphabet: Alphabet = config.make_alphabet()
        self.network = RecogniserNetwork(config.network, self.alphabet.size, config.image.height)
        if config.loop.channels_last:
            self.network.to(memory_format=torch.channels_last)
        self.average = AveragedModel(self.network, avg_fn=self._average_step, use_buffers=True)
        self.average.requires_grad_(requires_grad=False)
        self.strips_seen: Tensor
        self.register_buffer("strips_seen", torch.zeros((), dtype=torch.long))
        self.validation = validation or {}
        self.sums: dict[str, list[float]] = {}
        self.skips = SkipCounts()
        self.figures: dict[str, float] = {}
        self.free_rate = False

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

    def progress(self) -> float:
        """Returns the share of the run that is done."""
        return float(self.strips_seen) / (self.config.loop.epochs * self.config.loop.strips_per_epoch)

    def on_before_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> TensorBatch:
        """Takes the counts of skipped strips out of a batch; the rest are tensors."""
        if isinstance(batch, dict) and SKIPS in batch:
            batch = dict(batch)
            self.skips.merge(batch.pop(SKIPS))
        return batch

    def training_step(self, batch: TensorBatch, index: int) -> Tensor:
        """Returns the loss of a batch.

        With several processes it is weighted so that the mean of their losses, and so of their gradients, is the mean
        over all symbols of all their batches.

        Raises:
            DivergedError: If the loss is not a number; the batch is saved beside the checkpoints.
        """
        losses = head_losses(self.network, batch, self.config.loop, sampling_share(self.progress(), self.config.loop))
        loss = total_loss(losses, self.config.loop)
        if not torch.isfinite(loss) and not self.free_rate:
            self._stop(batch, loss)
        own = torch.stack((torch.tensor(len(batch["widths"])), (batch["label_lengths"] + 1).sum().cpu()))
        own = own.to(self.device)
        everyone = sum_over_processes(own)  # strips, symbols
        self.strips_seen += everyone[0]
        share = 1.0 if self.processes.count == 1 else self.processes.count * own[1] / everyone[1]
        shown = {name: part.detach() * share for name, part in {**losses, "loss": loss}.items()}
        for name, part in shown.items():
            self.sums.setdefault(f"train_{name}", []).append(float(part))
        self.log("loss", shown["loss"], prog_bar=True, logger=False, batch_size=1)
        self.log_dict({f"train/{name}": part for name, part in shown.items()}, batch_size=1)
        return loss * share

    def _stop(self, batch: TensorBatch, loss: Tensor) -> None:
        rank = f"-{self.processes.rank}" if self.processes.rank else ""
        path = Path(self.trainer.default_root_dir) / f"not-finite-batch{rank}.pt"
        torch.save(batch, path)
        raise DivergedError(f"the loss is {float(loss)} at step {self.global_step}; the batch is saved in {path}")

    def on_train_epoch_start(self) -> None:
        """Forgets the last epoch's losses and counts."""
        self.sums = {}
        self.skips = SkipCounts()

    def on_train_batch_start(self, batch: TensorBatch, batch_idx: int) -> None:
        """Sets the learning rate from the share of the run that is done; an epoch's first batch seeds its randomness.

        Seeding any earlier would not do: what happens before an epoch's first batch differs after a resume.
        """
        if batch_idx == 0:
            torch.manual_seed(self.config.seed * 1_000_003 + self.current_epoch + self.processes.rank * 7_368_787)
        if self.free_rate:
            return
        rate = learning_rate(self.progress(), self.config.loop)
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = rate
        self.log("train/learning_rate", rate, batch_size=1)

    def on_train_batch_end(self, outputs: object, batch: TensorBatch, batch_idx: int) -> None:
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
        """Reads every validation set with every head, greedily and from its own outputs, and logs error rates.

        Processes share the batches out; each then knows all that was read.
        """
        self.figures = {}
        rates: dict[str, list[float]] = {}
        for name, batches in self.validation.items():
            pairs = self._read(batches[self.processes.rank :: self.processes.count])
            for head in pairs:
                result = evaluate_pairs(pairs[head])
                self.figures[f"{name}_{head}_exact"] = result.exact
                self.figures[f"{name}_{head}_cer"] = result.cer
                rates.setdefault(head, []).append(1 - result.exact)
        if not rates:
            return
        errors = {head: float(np.mean(values)) for head, values in rates.items()}
        self.figures |= {f"validation_{head}_error": error for head, error in errors.items()}
        self.log_dict(self.figures, batch_size=1)
        self.figures["validation_error"] = float(np.mean(list(errors.values())))
        self.log("validation_error", self.figures["validation_error"], prog_bar=True, batch_size=1)

    def _read(self, batches: ValidationBatches) -> dict[str, list[tuple[str, str]]]:
        """Reads batches; returns the true and the read texts of those of all processes, by head."""
        network = self.averaged_network()
        pairs: dict[str, list[tuple[str, str]]] = {}
        for arrays, texts in batches:
            tensors = to_tensors(arrays)
            longest = arrays.labels.shape[1] + 5
            images, widths = tensors["images"].to(self.device), tensors["widths"].to(self.device)
            for head, rows in network.read(images, widths, longest).items():
                read = [(text, self.alphabet.decode(row)) for text, row in zip(texts, rows, strict=True)]
                pairs.setdefault(head, []).extend(read)
        parts = gather_from_processes(pairs)
        heads = dict.fromkeys(head for part in parts for head in part)
        return {head: [pair for part in parts for pair in part.get(head, [])] for head in heads}
