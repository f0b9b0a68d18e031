"""Curves of a run: losses, error rates and the learning rate against the strips seen."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure


def draw_curves(rows: list[dict[str, float]], path: Path) -> None:
    """Draws the curves of a run.

    Args:
        rows: Rows of its metrics log.
        path: PNG file to write.
    """
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    losses, errors, rates = figure.subplots(1, 3, width_ratios=(5, 5, 3))
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        known = [row for row in rows if name in row]
        strips = [row["strips"] / 1000 for row in known]
        if name.startswith("train_"):
            losses.plot(strips, [row[name] for row in known], marker=".", label=name.removeprefix("train_"))
        elif name.endswith("_exact"):
            errors.plot(strips, [100 * (1 - row[name]) for row in known], marker=".", label=name.removesuffix("_exact"))
        elif name == "learning_rate":
            rates.plot(strips, [row[name] for row in known], marker=".", label="at the end of each epoch")
    losses.set(title="Training loss", ylabel="loss per symbol", yscale="log")
    errors.set(title="Validation, each head reading alone", ylabel="strips not exact, %")
    errors.set_yscale("symlog", linthresh=1)
    rates.set(title="Learning rate", ylabel="learning rate")
    for axes in (losses, errors, rates):
        axes.set_xlabel("thousand strips seen")
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=7)
    figure.savefig(path, dpi=100)
