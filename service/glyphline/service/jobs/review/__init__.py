"""The rows of a job that are most likely wrong, as a page to correct them on, and the corrections as a data set."""

from glyphline.service.jobs.review.dataset import Written, write_dataset
from glyphline.service.jobs.review.output import JobOutput, open_output
from glyphline.service.jobs.review.page import Review, render_page
from glyphline.service.jobs.review.pairing import Pairing, pair_rows
from glyphline.service.jobs.review.selection import Selection, select_rows
from glyphline.service.jobs.review.threshold import Basis, find_basis

__all__ = [
    "Basis",
    "JobOutput",
    "Pairing",
    "Review",
    "Selection",
    "Written",
    "find_basis",
    "open_output",
    "pair_rows",
    "render_page",
    "select_rows",
    "write_dataset",
]
