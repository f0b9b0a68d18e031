"""What to do about a picture that could not be read."""

from __future__ import annotations

__all__ = ["advice_on"]

_ADVICE = {
    "empty_image": "The file has no content: fetch it again.",
    "undecodable_image": "Open it with a viewer. If it shows a picture, save that as PNG; else fetch it again.",
    "undecodable_page": "The PAGE or ALTO file itself is damaged or is none: see the message, and export it again.",
    "image_too_large": "If it is one line of text, allow it with --max-bytes or --max-pixels; a page has to be cut.",
    "image_too_wide": "Cut it where there is space, or read it with a CTC model, which takes longer lines.",
    "image": "The box or polygon that was to be cut does not lie on the page: check it in the list.",
    "file_not_found": "It was not there: check its path, which is relative to the list's folder.",
    "permission_denied": "Whoever runs the job may not read it: change its permissions.",
    "unreadable_file": "Its disk or storage did not give it: try again when it is there.",
    "worker_crashed": "Reading it ended a process: keep it apart, and report it if you can.",
    "refused": "It may not be read from there: see the message.",
}
_OTHERWISE = "Read it again by a job of its own."


def advice_on(code: str) -> str:
    """Returns a sentence for an error's code."""
    return _ADVICE.get(code, _OTHERWISE)
