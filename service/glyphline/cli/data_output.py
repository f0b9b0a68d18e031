"""How `glyphline data` shows its findings and figures: as plain lines, for people and for `grep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glyphline.training.datasets.commands.stats import Stats
    from glyphline.training.datasets.commands.validate import Finding, PartSummary, Range, Validation


def print_validation(result: Validation, show: int, has_alphabet: bool) -> None:
    """Prints the data sets, then the findings kind by kind.

    Args:
        result: What was found.
        show: Greatest number of findings of each kind.
        has_alphabet: Whether characters were compared with an alphabet.
    """
    from glyphline.training.datasets.commands.validate import KINDS

    for part in result.parts:
        print(_describe(part))
    for kind, (_, meaning) in KINDS.items():
        found = [finding for finding in result.findings if finding.kind == kind]
        if not found:
            continue
        severity = "error" if any(finding.severity == "error" for finding in found) else "warning"
        print(f"\n{severity}: {kind}, {len(found):,} times: {meaning}")
        for finding in found[:show]:
            print(f"  {_place(finding)}")
        if len(found) > show:
            print(f"  … and {len(found) - show:,} more (--show N, or --json for all)")
    if not has_alphabet:
        print("\ncharacters are not compared with an alphabet: give --config or --alphabet for that")
    print(f"\n{result.errors:,} errors, {len(result.findings) - result.errors:,} warnings")


def _place(finding: Finding) -> str:
    if not finding.file:
        return f"{finding.part}: {finding.message}"
    if finding.message.startswith(finding.file):  # a picture that cannot be read says itself where it is
        return finding.message
    return f"{finding.file}, line {finding.line}: {finding.source}: {finding.message}"


def _describe(part: PartSummary) -> str:
    shown = part.alphabet if len(part.alphabet) <= 100 else f"{part.alphabet[:100]}…"
    sizes = f"{_range(part.heights)} px high, {_range(part.normalised_widths)} px wide once normalised"
    return (
        f"{part.name}: {part.strips:,} strips, {part.readable:,} readable, {sizes if part.heights else 'no sizes'};"
        f" {part.characters:,} characters, {len(part.alphabet)} different: {shown}"
    )


def _range(values: Range | None) -> str:
    return "" if values is None else f"{values.least:,.0f} to {values.greatest:,.0f} (median {values.median:,.0f})"


def print_stats(result: Stats) -> None:
    """Prints a data set in numbers, and its characters with tabs between, the most frequent first."""
    from glyphline.training.datasets.commands.stats import spread

    summary = result.summary()
    print(f"{result.name}: {result.strips:,} strips, {result.unreadable:,} unreadable, {result.empty:,} without text")
    lengths = [length for length, count in result.lengths.items() for _ in range(count)]
    for title, values in (
        ("length of the text", spread(tuple(lengths))),
        ("height in pixels", summary["heights"]),
        ("width once normalised", summary["widths"]),
    ):
        if isinstance(values, dict):
            print(
                f"  {title:22} " + ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in values.items())
            )
    print(f"  {len(result.characters)} characters, {sum(result.characters.values()):,} in all")
    for character, count in result.characters.items():
        shown = {" ": "space"}.get(character, character if character.isprintable() else ascii(character))
        print(f"  {shown}\t{count:,}")
