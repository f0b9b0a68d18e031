"""What reads a job's pictures: this machine's cores, or a server (in `engines.server`, which needs grpc)."""

from glyphline.service.jobs.engines.engine import Engine, ReadChunk
from glyphline.service.jobs.engines.local import LocalEngine, usual_workers
from glyphline.service.jobs.engines.worker import WorkerSettings

__all__ = ["Engine", "LocalEngine", "ReadChunk", "WorkerSettings", "usual_workers"]
