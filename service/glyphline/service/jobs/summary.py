"""What a whole job came to, for people and for programs."""

from __future__ import annotations

from typing import Any

from glyphline.service.jobs.tally import Tally
from glyphline.service.jobs.wording import counted

__all__ = ["as_json", "as_text"]


def as_json(tally: Tally) -> dict[str, Any]:
    """Builds the summary's JSON object."""
    read = tally.images - tally.failed
    return {
        "images": tally.images,
        "read": read,
        "failed": tally.failed,
        "errors": dict(sorted(tally.errors.items())),
        "blank": tally.blank,
        "truncated": tally.truncated,
        "mean_confidence": round(tally.confidence / read, 6) if read else None,
        "seconds": round(tally.seconds, 3),
        "images_per_second": round(tally.images / tally.seconds, 2) if tally.seconds else None,
        "evaluation": tally.evaluation(),
    }


def as_text(tally: Tally) -> list[str]:
    """Builds the lines that tell people the same."""
    counts = as_json(tally)
    failed = ", ".join(f"{count:,} {code}" for code, count in counts["errors"].items())
    rate = f" ({counts['images_per_second']:,.1f} images/s)" if counts["images_per_second"] else ""
    lines = [
        f"{counts['read']:,} of {counted(counts['images'], 'image')} read in {counts['seconds']:,.1f} s{rate}"
        + (f"; failed: {failed}" if failed else "")
    ]
    if counts["read"]:
        lines.append(
            f"mean confidence {counts['mean_confidence']:.1%}, {tally.blank:,} blank, {tally.truncated:,} cut short"
        )
    if scores := counts["evaluation"]:
        (low, high), (cer_low, cer_high) = scores["exact_interval"], scores["cer_interval"]
        lines.append(
            f"against {counted(scores['images'], 'reference')}: exact {scores['exact']:.2%} ({low:.2%} to {high:.2%}),"
            f" CER {scores['cer']:.2%} ({cer_low:.2%} to {cer_high:.2%})"
        )
    return lines
