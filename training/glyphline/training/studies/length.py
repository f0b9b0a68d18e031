"""How an attention decoder keeps its place on strips longer than any it was trained on.

All are trained on strips of one to eight digits, as the study of heads trains them, and read strips of 9–16 and 17–32.
Each differs in one thing: what the attention looks at, how far it may move, what the encoder knows of places, what is
trained beside it, how long its strips are, or how its readings are chosen.
"""

from __future__ import annotations

from dataclasses import replace

from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.training.datasets.samples import Sample
from glyphline.training.studies.digit_trials import (
    EPOCHS,
    Trial,
    TrialFindings,
    TrialRecord,
    compose_sets,
    draw_trials,
    measure_lengths,
    run_trials,
    tabulate_trials,
    train_trial,
)
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

JOINT = Trial("attention, CTC beside it", "attention", beside="ctc")
ALL = replace(
    JOINT,
    label="attention, CTC beside it, one step in five anew, within 16 frames",
    attention_reach=16,
    loop="restarts = 0.2\n",
)
LONG = replace(ALL, label=f"{ALL.label}, trained five times as long", epochs=5 * EPOCHS)
PLACED = replace(
    JOINT,
    label="attention, CTC beside it, nothing carried on, within 16 frames, convolutions alone, bent digits",
    encoder_layers=0,
    carries_state=False,
    attention_reach=16,
    network="residual_blocks = 1\nweigh_rows = true\n",
    source="distortion = 0.6",
    epochs=7 * EPOCHS,
)
LONGER = replace(
    PLACED,
    label="the same, ten times as long",
    epochs=3 * EPOCHS,
    loop="decay = 0.9\n",
    learning_rate="6e-4",
    after=PLACED,
)
LONGEST = replace(
    LONGER, label="the same, twelve times as long", epochs=12, loop="decay = 1.0\n", learning_rate="4e-4", after=LONGER
)

TRIALS = (
    Trial("ctc, GRU", "ctc"),
    Trial("attention, content alone", "attention", network="location_filters = 0\n"),
    Trial("attention, GRU", "attention"),
    Trial("attention, at most 16 frames from the last place", "attention", attention_reach=16),
    Trial("attention, encoder of convolutions alone", "attention", encoder_layers=0),
    Trial("attention, one step in five starts anew", "attention", loop="restarts = 0.2\n"),
    Trial("attention, every step starts anew", "attention", carries_state=False),
    Trial("attention, three in ten strips two side by side", "attention", source="joined = 0.3"),
    JOINT,
    ALL,
    LONG,
    PLACED,
    LONGER,
    LONGEST,
)

BEAM = DecodingOptions(decoder="beam", beam_width=8, max_alternatives=8)
UNLISTED = 1.0
"""How much less likely than a list's last text one that is not on it is taken to be, as a natural logarithm."""


def read_jointly(attention: Recognizer, ctc: Recognizer, samples: list[Sample]) -> list[str | None]:
    """Reads with both heads: of the texts on either's list, the one whose log-probabilities have the greatest sum."""
    images = [GreyImage(sample.pixels) for sample in samples]
    outcomes = zip(attention.recognize(images, BEAM), ctc.recognize(images, BEAM), strict=True)
    texts: list[str | None] = []
    for pair in outcomes:
        scores = [
            {each.text: each.log_probability for each in outcome.alternatives}
            for outcome in pair
            if isinstance(outcome, Reading)
        ]
        if len(scores) < 2:
            texts.append(None)
            continue
        unlisted = [min(listed.values()) - UNLISTED for listed in scores]
        candidates = sorted(set().union(*scores))
        totals = {
            text: sum(listed.get(text, least) for listed, least in zip(scores, unlisted, strict=True))
            for text in candidates
        }
        texts.append(max(candidates, key=totals.__getitem__))
    return texts


def measure(options: StudyOptions, tell: Tell) -> TrialFindings:
    """Trains and measures all, and reads once more with both heads of those that have two."""
    findings = run_trials(TRIALS, options, tell)
    assert options.data_root is not None
    assert options.folder is not None
    sets = compose_sets(options.data_root, 20 if options.quick else 1000)
    records: list[TrialRecord] = []
    for record in findings.records:
        records.append(record)
        for trial in (JOINT, ALL, LONG, PLACED, LONGER, LONGEST):
            if record.label != trial.label:
                continue
            folder = options.folder / f"{trial.folder}-{record.seed}"
            heads = [
                load_recognizer(
                    train_trial(trial, record.seed, options.data_root, folder, head=head, quick=options.quick)
                )
                for head in ("attention", "ctc")
            ]
            lengths = measure_lengths((read_jointly(heads[0], heads[1], samples) for samples in sets), sets)
            records.append(replace(record, label=f"{record.label}; both heads read", lengths=lengths))
    return TrialFindings(tuple(records))


def tabulate(findings: TrialFindings) -> tuple[Table, ...]:
    """One row a recogniser."""
    title = "Trained on strips of 1–8 MNIST digits, read on unseen writers"
    return (tabulate_trials(findings, title, "Attention"),)


STUDY = Study(
    "length",
    "What keeps an attention decoder in its place on strips longer than any it was trained on",
    measure,
    tabulate,
    draw_trials,
    needs_data=True,
)
