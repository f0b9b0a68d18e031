"""The model card: what a bundle is, made of its manifest alone, for people."""

from __future__ import annotations

from glyphline.models.bundle import Manifest


def write_card(manifest: Manifest) -> str:
    """Returns the card of a bundle in Markdown.

    Args:
        manifest: The bundle's manifest.
    """
    training = manifest.training
    config = training.get("config", {})
    lines = [
        f"# {manifest.name}, version {manifest.version}",
        "",
        f"Reads {manifest.task} with a {manifest.head} head. Symbols: `{''.join(manifest.alphabet)}`"
        + (" (the last is a space)." if manifest.alphabet[-1] == " " else "."),
        "",
        f"- Pictures are brought to {manifest.image.height} pixels of height; the widest is {manifest.image.max_width} then.",
        f"- At most {manifest.max_output_length} symbols are read; longer texts are cut and flagged.",
        f"- {int(str(training.get('parameters', 0))):,} parameters, {int(str(training.get('strips_seen', 0))):,} strips seen.",
        f"- Confidences are calibrated with temperature {manifest.temperature:g}, on the validation sets.",
        f"- Torch and ONNX Runtime differ by at most {float(str(training.get('parity', 0))):.1g} in a probability.",
        f"- Licence of the weights: {manifest.licence}. Made on {manifest.created[:10]} from commit {manifest.git_commit[:12]}.",
        "",
    ]
    if manifest.evaluation:
        lines += [
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
                f"| {row.cer:.2%} ({cer_low:.2%} to {cer_high:.2%}) |"
            )
        lines += ["", *(f"    {command}" for command in dict.fromkeys(row.command for row in manifest.evaluation)), ""]
    if manifest.data:
        lines += ["## Data", "", "| set | licence | use |", "|---|---|---|"]
        lines += [f"| {source.name} | {source.licence} | {source.use} |" for source in manifest.data]
        lines.append("")
    if isinstance(config, dict) and config:
        lines += [
            "## How to make it again",
            "",
            "    python scripts/fetch_fonts.py",
            f"    glyphline train training/glyphline/training/configs/{config['name']}.toml --data-root DATA --output runs/{config['name']}",
            f"    glyphline export runs/{config['name']} --output OUT --name {manifest.name} --version {manifest.version} "
            f"--head {manifest.head} --data-root DATA",
            "",
            "The configuration is in `manifest.json` too, under `training.config`.",
            "",
        ]
    return "\n".join(lines)
