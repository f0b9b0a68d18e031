"""A short training of a tiny network on the device: its loss falls, and it goes on from where it was stopped."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from gpu_figures import Check
from PIL import Image, ImageDraw, ImageFont

from glyphline.models.devices import Device, gpu_number

EPOCHS = 1
CONFIG = """
name = "tiny"
alphabet = "0123456789"
seed = 1
max_output_length = 8
[image]
height = 32
[network]
heads = ["ctc", "attention"]
channels = [8, 16, 16, 32]
encoder_size = 32
encoder_layers = 1
decoder_size = 32
attention_size = 16
[loop]
epochs = {epochs}
strips_per_epoch = {strips}
batch_columns = 2048
workers = 0
validate_every = 1
device = "{device}"
precision = "{precision}"
[[sources]]
kind = "real"
path = "strips"
[validation.strips]
kind = "folder"
path = "strips"
"""


def check_training(device: Device) -> list[Check]:
    """Trains in each precision of the device, and with two processes where there are two GPUs."""
    missing = [name for name in ("torch", "pytorch_lightning", "onnx") if find_spec(name) is None]
    if missing:
        return [Check("training", None, f"{', '.join(missing)} is not there: pip install 'glyphline[train]'")]
    import torch  # noqa: PLC0415  (optional, and slow to load)

    on_gpu = gpu_number(device) is not None
    if on_gpu and not torch.cuda.is_available():
        return [Check("training", None, f"torch {torch.__version__} finds no GPU: install a torch for yours")]
    strips = 6400 if on_gpu else 128
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        draw_strips(root / "strips")
        checks = [
            check_run(root, "cuda" if on_gpu else "cpu", precision, strips)
            for precision in (("fp16", "bf16") if on_gpu else ("fp32",))
        ]
        gpus = torch.cuda.device_count() if on_gpu else 0
        if gpus < 2:
            checks.append(Check("training by two processes", None, f"NCCL needs two GPUs, here {gpus} can be used"))
        else:
            checks.append(check_run(root, "cuda", "fp32", strips, processes=2))
    return checks


def check_run(root: Path, device: str, precision: str, strips: int, processes: int = 1) -> Check:
    """Trains for an epoch, then for one more, and looks at what the run's own log says."""
    from glyphline.training.metrics_log import MetricsLog  # noqa: PLC0415  (optional)

    name = f"training on {device} in {precision}" + (" by two processes" if processes > 1 else "")
    run = root / f"{precision}-{processes}"
    for epochs in (EPOCHS, EPOCHS + 1):
        path = root / "tiny.toml"
        path.write_text(CONFIG.format(epochs=epochs, strips=strips, device=device, precision=precision))
        launch = ["-m", "glyphline"]
        if processes > 1:
            launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", *launch]
        command = [sys.executable, *launch, "train", str(path), "--data-root", str(root), "--output", str(run)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["nothing was said"]
            return Check(name, False, f"exit code {done.returncode}: {lines[-1][:200]}")
    rows = MetricsLog(run / "metrics.csv").rows()
    losses = [row["train_ctc"] + row["train_attention"] for row in rows]
    resumed = [row["epoch"] for row in rows] == list(range(EPOCHS + 1)) and "going on from" in done.stderr + done.stdout
    shown = " → ".join(f"{loss:.2f}" for loss in losses)
    return Check(name, losses[-1] < losses[0] and resumed, f"loss {shown}; {'' if resumed else 'not '}resumed")


def draw_strips(folder: Path) -> None:
    """Draws labelled strips of digits with the font that Pillow carries."""
    folder.mkdir()
    font = ImageFont.load_default(24)
    labels = []
    for number in range(40):
        text = str(number * 7919 % 10_000)
        image = Image.new("L", (16 * len(text) + 12, 36), 255)
        ImageDraw.Draw(image).text((6, 4), text, fill=0, font=font)
        image.save(folder / f"{number}.png")
        labels.append(f"{number}.png\t{text}\n")
    (folder / "labels.tsv").write_text("".join(labels), encoding="utf-8")
