"""The model card: what a bundle is, made of its manifest alone, for people."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import JsonValue

from glyphline.models.manifest import ERRORS_NAME, Manifest

NOT_STATED = "not stated"
"""What is said of a licence that nobody gave."""

_HEADS = {
    "ctc": "a CTC",
    "attention": "an attention",
    "flatten": "a flatten",
    "image-first": "an image-first",
    "pooled-state": "a pooled-state",
}
_CONFIDENCES = {
    "mean": "geometric mean of its symbols' probabilities",
    "product": "product of its symbols' probabilities",
    "min": "probability of its least sure symbol",
}


def _symbols(manifest: Manifest) -> str:
    """What is read, in a line: single characters side by side, words and word pieces apart."""
    symbols = manifest.alphabet
    if any(len(symbol) > 1 for symbol in symbols):
        shown, more = symbols[:200], len(symbols) - 200
        return ", ".join(_code(symbol) for symbol in shown) + (f" and {more} more." if more > 0 else ".")
    return _code("".join(symbols)) + (" (the last is a space)." if symbols[-1] == " " else ".")


def _code(text: str) -> str:
    """Sets a text as code, whatever backticks it has."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"{fence}{text}{fence}"


def _use(manifest: Manifest) -> list[str]:
    """What the recogniser is for, and where it ends."""
    return [
        "## Use and limits",
        "",
        f"Made to read pictures of a single line cropped from a page, a form or a device: {manifest.task}, and nothing"
        " but the symbols above.",
        "",
        "- It finds no lines on a page, and reads other writing as whichever of its symbols it resembles.",
        "- A confidence is calibrated on strips like those of training. On others it may be far too high: measure on"
        " your own (`glyphline evaluate`) before anything depends on it, and have people read what is not sure.",
        "- It makes mistakes. Let no decision about money or people rest on a reading that nothing else confirms.",
    ]


def _train(name: str, start: str | None) -> str:
    shipped = (Path(__file__).parent / "configs" / f"{name}.toml").exists()
    config = f"training/glyphline/training/configs/{name}.toml" if shipped else f"{name}.toml"
    command = f"    glyphline train {config} --data-root DATA --output runs/{name}"
    return command if start is None else f"{command} \\\n        --start-from runs/{start}"


def _earlier_runs(manifest: Manifest) -> list[tuple[str, int]]:
    """The runs whose weights this one started from, the first one first, with the strips that each had seen."""
    runs = manifest.training.get("start_from") or []
    runs = runs if isinstance(runs, list) else [runs]  # older bundles know of one run alone
    return [(str(run["run"]), int(str(run["strips_seen"]))) for run in runs if isinstance(run, dict)]


def _again(manifest: Manifest, name: str) -> list[str]:
    """How to make it again: the commands, from the first run on."""
    lines = ["## How to make it again", ""]
    config = str(manifest.training["config"]).replace("'", '"')
    if any(f'"fonts{end}' in config for end in ('"', "/")):
        lines.append("    python scripts/fetch_fonts.py --output DATA/fonts")
    if '"words/' in config:
        lines.append("    python scripts/fetch_words.py --output DATA/words")
    before: str | None = None
    for run, _ in _earlier_runs(manifest):
        lines.append(_train(run, before))
        before = run
    return [
        *lines,
        _train(name, before),
        f"    glyphline export runs/{name} --output OUT --name {manifest.name} --version {manifest.version} \\",
        f"        --head {manifest.head} --data-root DATA{_checkpoint_option(manifest)}",
        *_guide(manifest),
        "",
        "The configuration is in `manifest.json` too, under `training.config`.",
    ]


def _guide(manifest: Manifest) -> list[str]:
    """The command that gives it its language model."""
    decoder = manifest.decoder
    if decoder.language_model is None:
        return []
    return [
        "    # the language model: see the top of the configuration",
        f"    glyphline guide OUT/{manifest.name}/{manifest.version} {decoder.language_model} --data-root DATA \\",
        f"        --weight {decoder.language_model_weight:g} --length-bonus {decoder.length_bonus:g}"
        f" --beam-width {decoder.beam_width}",
    ]


def _checkpoint_option(manifest: Manifest) -> str:
    """What makes `export` take the same checkpoint: older bundles were always made of the last."""
    checkpoint = manifest.training.get("checkpoint")
    best = isinstance(checkpoint, dict) and checkpoint.get("which") == "best"
    return "" if best else " --checkpoint last"


def _weights(training: dict[str, JsonValue]) -> list[str]:
    """Which weights of the run these are; nothing where the manifest does not say."""
    checkpoint = training.get("checkpoint")
    if not isinstance(checkpoint, dict):
        return []
    error = checkpoint.get("validation_error")
    rate = f", validation error {error:.2%}" if isinstance(error, float) else ""
    return [
        f"- Weights: the running average at the end of epoch {checkpoint['epoch']} (counted from 0), the"
        f" {checkpoint['which']} checkpoint of the run{rate}."
    ]


def _search(manifest: Manifest) -> list[str]:
    """How texts are searched, where a language model has a part in it."""
    decoder = manifest.decoder
    if decoder.language_model is None:
        return []
    return [
        f"- Texts are found by a beam search of width {decoder.beam_width}, guided by the language model of characters"
        f" {decoder.language_model} with the weight {decoder.language_model_weight:g} and a bonus of"
        f" {decoder.length_bonus:g} a character. `--decoder greedy` does without: faster, and better where texts are"
        " like none of its languages."
    ]


def _number(training: dict[str, JsonValue], name: str) -> float:
    value = training.get(name, 0)
    return float(value) if isinstance(value, int | float) else 0.0


def _measured(manifest: Manifest) -> list[str]:
    """What it scored, in all and by length, and how far its confidences can be believed."""
    lines = [
        "## Measured",
        "",
        "Intervals are 95 %. None of it was seen in training.",
        "",
        "| set | strips | exact | character error rate |",
        "|---|---|---|---|",
    ]
    for row in manifest.evaluation:
        low, high = row.exact_interval
        cer_low, cer_high = row.cer_interval
        lines.append(
            f"| {row.data_set} | {row.images:,} | {row.exact:.2%} ({low:.2%} to {high:.2%}) "
            # Edits over no characters at all, as on blank strips, are no rate.
            + (f"| {row.cer:.2%} ({cer_low:.2%} to {cer_high:.2%}) |" if row.cer <= 1 else "| |")
        )
    lines += ["", *(f"    {command}" for command in dict.fromkeys(row.command for row in manifest.evaluation))]
    lengths = [row for row in manifest.evaluation if len(row.by_length) > 1]
    if lengths:
        lines += ["", "Exact by length of the text in characters:", "", "| set | length: exact (strips) |", "|---|---|"]
        for row in lengths:
            groups = "; ".join(f"{each.length}: {each.exact:.1%} ({each.images:,})" for each in row.by_length)
            lines.append(f"| {row.data_set} | {groups} |")
    judged = [row for row in manifest.evaluation if row.calibration_error is not None]
    if judged:
        lines += [
            "",
            "How far the confidences can be believed: the expected calibration error is how far they are from the share"
            " of right readings, on average; straight through can go those that together are 99.9 % exact.",
            "",
            "| set | expected calibration error | straight through at 99.9 % |",
            "|---|---|---|",
        ]
        lines += [
            f"| {row.data_set} | {row.calibration_error:.3f} | {row.straight_through or 0:.1%} |" for row in judged
        ]
    return lines


def _confidence(manifest: Manifest) -> list[str]:
    """How a text's confidence comes about."""
    if not manifest.odds:
        return [
            f"- A text's confidence is the {_CONFIDENCES[manifest.confidence]}, calibrated with temperature "
            f"{manifest.temperature:g} on the validation sets."
        ]
    told = []
    for search, odds in manifest.odds.items():
        parts = [f"{odds.offset:+.2f}", f"{odds.symbols:.2f} × that of its symbols"]
        if odds.share:
            parts.append(f"{odds.share:.2f} × that of its share of the search")
        told.append(f"{' + '.join(parts)} ({search})")
    return [
        f"- A text's confidence is the chance that all of it is right. Its log odds, fitted on the validation sets: "
        f"{'; '.join(told)}."
    ]


def write_card(manifest: Manifest, *, errors: bool = False) -> str:
    """Returns the card of a bundle in Markdown.

    Args:
        manifest: The bundle's manifest.
        errors: Whether the bundle has a sheet of typical errors.
    """
    training = manifest.training
    config = training.get("config", {})
    earlier = [f"the {strips_seen:,} of {run}" for run, strips_seen in _earlier_runs(manifest)]
    lines = [
        f"# {manifest.name}, version {manifest.version}",
        "",
        f"Reads {manifest.task} with {_HEADS[manifest.head]} head. Symbols: {_symbols(manifest)}",
        "",
        f"- Strips are brought to {manifest.image.height} pixels of height; at most {manifest.image.max_width} wide.",
        f"- At most {manifest.max_output_length} symbols are read; longer texts are cut and flagged.",
        f"- {_number(training, 'parameters'):,.0f} parameters, {_number(training, 'strips_seen'):,.0f} strips seen"
        + (f" after {' and '.join(earlier)}." if earlier else "."),
        *_weights(training),
        *_search(manifest),
        *_confidence(manifest),
        f"- Torch and ONNX Runtime differ by at most {_number(training, 'parity'):.1g} in a probability.",
        f"- Licence of the weights: {manifest.licence or NOT_STATED}.",
        f"- Made on {manifest.created[:10]} from commit {manifest.git_commit[:12]}.",
        "",
    ]
    lines += [*_use(manifest), ""]
    if manifest.evaluation:
        lines += [*_measured(manifest), ""]
    if errors:
        lines += ["## Typical errors", "", "What is there, and what was read.", "", f"![Errors]({ERRORS_NAME})", ""]
    if manifest.data:
        lines += ["## Data", "", "| set | licence | use |", "|---|---|---|"]
        lines += [f"| {source.name} | {source.licence} | {source.use} |" for source in manifest.data]
        lines.append("")
    if isinstance(config, dict) and config:
        lines += [*_again(manifest, str(config["name"])), ""]
    return "\n".join(lines)
