"""Every head with GRU and with LSTM on strips of one to eight digits: what each reads, inside and beyond that length.

All are trained by `glyphline.training.loop` on the same strips, as many for each, exported, and read by the recogniser
that serves them. The flatten head, which learns a place of the canvas at a time, is trained once more until its
validation stops improving.
"""

from __future__ import annotations

from glyphline.training.studies.digit_trials import (
    Trial,
    TrialFindings,
    draw_trials,
    run_trials,
    tabulate_trials,
)
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

HEADS = ("ctc", "attention", "pooled-state", "image-first", "flatten")
CELLS = ("gru", "lstm")

TRIALS = (
    *(Trial(f"{head}, {cell.upper()}", head, cell) for head in HEADS for cell in CELLS),
    Trial("flatten, GRU, until it stops improving", "flatten", "gru", epochs=30, patience=4),
)


def measure(options: StudyOptions, tell: Tell) -> TrialFindings:
    """Trains and measures every head with every cell."""
    return run_trials(TRIALS, options, tell)


def tabulate(findings: TrialFindings) -> tuple[Table, ...]:
    """One row a recogniser."""
    title = "Trained on strips of 1–8 MNIST digits, read on unseen writers"
    return (tabulate_trials(findings, title, "Head and cell"),)


STUDY = Study(
    "heads",
    "What each head reads, within the lengths it was trained on and beyond",
    measure,
    tabulate,
    draw_trials,
    needs_data=True,
)
