"""What runs inside one worker of a Ray cluster: the same reading as in a process of this machine."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Self

from glyphline.models.bundle import Bundle
from glyphline.models.manifest import MANIFEST_NAME
from glyphline.service.jobs.engines import worker
from glyphline.service.jobs.engines.worker import WorkerSettings
from glyphline.service.jobs.errors import JobError
from glyphline.service.jobs.pictures import Picture
from glyphline.service.jobs.rows import Outcome

__all__ = ["Reader", "Shipment"]


@dataclass(frozen=True, slots=True)
class Shipment:
    """All that a worker needs, for nodes that share no disk with this one.

    Attributes:
        settings: What it does.
        files: The bundle: contents by name.
        folder: Where relative paths of pictures begin.
        release: Of Glyphline.
    """

    settings: WorkerSettings
    files: dict[str, bytes]
    folder: str
    release: str

    @classmethod
    def of(cls, settings: WorkerSettings, bundle: Bundle) -> Self:
        """Packs a bundle, whose megabytes are few enough to hold."""
        names = [MANIFEST_NAME, *bundle.manifest.files]
        files = {name: bundle.file(name).read_bytes() for name in names}
        return cls(settings, files, os.getcwd(), version("glyphline"))


class Reader:
    """An actor: one recogniser with one thread, in a process of its own on any node."""

    def __init__(self, shipment: Shipment) -> None:
        """Keeps what it needs; what may fail is left to `prepare`, which can say so."""
        self._shipment: Shipment | None = shipment

    def prepare(self) -> None:
        """Loads the model.

        Raises:
            BundleError: If the bundle is damaged.
            DeviceError: If the device is not there.
            JobError: If this node has another release of Glyphline: it may read differently.
        """
        shipment = self._shipment
        assert shipment is not None
        if (release := version("glyphline")) != shipment.release:
            raise JobError(
                f"node {socket.gethostname()} has Glyphline {release}, and this is {shipment.release}:"
                " all must have the same"
            )
        with suppress(OSError):  # it is not there: pictures by URI can be read all the same, others will be missed
            os.chdir(shipment.folder)
        with tempfile.TemporaryDirectory(prefix="glyphline-") as folder:
            for name, content in shipment.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            worker.start(replace(shipment.settings, bundle=Path(folder)))
            worker.load()
        self._shipment = None

    def read(self, pictures: Sequence[Picture]) -> list[Outcome]:
        """Reads pictures; see `worker.read_pictures`."""
        return worker.read_pictures(pictures)
