"""Batch transcription: files in, one row of JSON an image out. Needs neither a server nor grpc nor torch."""

from glyphline.service.jobs.inputs import InputError, find_images, paths_from_list
from glyphline.service.jobs.references import load_references
from glyphline.service.jobs.rows import Row, RowError
from glyphline.service.jobs.summary import Summary
from glyphline.service.jobs.transcribe import Job, JobError, transcribe
from glyphline.service.jobs.worker import WorkerSettings
from glyphline.service.jobs.writers import JsonLinesWriter, OutputError, StreamWriter

__all__ = [
    "InputError",
    "Job",
    "JobError",
    "JsonLinesWriter",
    "OutputError",
    "Row",
    "RowError",
    "StreamWriter",
    "Summary",
    "WorkerSettings",
    "find_images",
    "load_references",
    "paths_from_list",
    "transcribe",
]
