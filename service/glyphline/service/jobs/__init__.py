"""Batch transcription: pictures in, a row for each out, none lost and none twice.

`sources` finds the pictures, an engine of `engines` reads them, `journal` and `sinks` write the rows. Needs neither a
server nor grpc nor torch.
"""

from glyphline.service.jobs.engines import Engine, LocalEngine, WorkerSettings, usual_workers
from glyphline.service.jobs.errors import ClusterError, InputError, JobError, OutputError
from glyphline.service.jobs.items import Chunk, Item
from glyphline.service.jobs.journal import Journal
from glyphline.service.jobs.pictures import Picture, picture_of
from glyphline.service.jobs.records import ModelIdentity, RowFormat
from glyphline.service.jobs.references import load_references
from glyphline.service.jobs.rows import Row, RowError
from glyphline.service.jobs.run import CHUNK_ITEMS, StreamOutput, run
from glyphline.service.jobs.sinks import Layout
from glyphline.service.jobs.sources import Inputs
from glyphline.service.jobs.tally import Tally

__all__ = [
    "CHUNK_ITEMS",
    "Chunk",
    "ClusterError",
    "Engine",
    "InputError",
    "Inputs",
    "Item",
    "JobError",
    "Journal",
    "Layout",
    "LocalEngine",
    "ModelIdentity",
    "OutputError",
    "Picture",
    "Row",
    "RowError",
    "RowFormat",
    "StreamOutput",
    "Tally",
    "WorkerSettings",
    "load_references",
    "picture_of",
    "run",
    "usual_workers",
]
