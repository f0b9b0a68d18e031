"""What a server refuses for its own reasons; the errors of the domain are in `glyphline.models.errors`."""

from __future__ import annotations

from pathlib import Path

from glyphline.models.errors import GlyphlineError, ModelNotFoundError

__all__ = [
    "BatchFailedError",
    "DeadlineError",
    "DeviceRefusedError",
    "FatalImageError",
    "IdleStreamError",
    "InternalError",
    "ModelRefusedError",
    "NotReadyError",
    "PermissionDeniedError",
    "QueueFullError",
    "RateError",
    "ReferenceConflictError",
    "RequestError",
    "RequestNotFoundError",
    "ServiceError",
    "SettingError",
    "StartError",
    "UnauthenticatedError",
    "UnknownGuideError",
    "UnknownModelError",
    "WorkerLostError",
]


class ServiceError(GlyphlineError):
    """A refusal that is not about the domain but about serving."""


class RequestError(ServiceError):
    """A field of a request has a value that no server would take.

    Attributes:
        field: Path of the field in the request message.
        message: What is wrong with it.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class UnknownModelError(ModelNotFoundError):
    """The server holds no such model.

    Attributes:
        name: What was asked for.
        message: What is there instead.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return self.message


class UnknownGuideError(ServiceError):
    """The server holds no such lexicon or language model.

    Attributes:
        kind: `lexicon` or `language model`.
        name: What was asked for.
        message: What is there instead.
    """

    def __init__(self, kind: str, name: str, message: str) -> None:
        super().__init__(kind, name, message)
        self.kind = kind
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return self.message


class QueueFullError(ServiceError):
    """As many images wait as may wait."""


class NotReadyError(ServiceError):
    """The server has no worker: its models are loading, or every worker was lost."""


class DeadlineError(ServiceError):
    """The caller's deadline passed before the image was read."""


class BatchFailedError(ServiceError):
    """A batch came to no result."""


class WorkerLostError(BatchFailedError):
    """The worker died, or had to be killed, with the batch in hand. Its images are tried again."""


class FatalImageError(BatchFailedError):
    """Workers died over the image and over no other: it is not tried again."""


class InternalError(BatchFailedError):
    """A fault of Glyphline itself. The caller is told no more than that."""


class RequestNotFoundError(ServiceError):
    """No remembered reading has the request id.

    Attributes:
        request_id: The id asked for.
    """

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return f"no reading of request {self.request_id!r} is remembered: it is unknown, too old, or another replica's"


class ReferenceConflictError(ServiceError):
    """The reading has been given another reference text before."""


class UnauthenticatedError(ServiceError):
    """The call has no token, or one that the server does not know."""


class PermissionDeniedError(ServiceError):
    """The token is good, and not for this."""


class RateError(ServiceError):
    """The caller's token has taken all that it may for the moment.

    Attributes:
        message: What there is too much of.
        retry_seconds: After how long it may be tried again.
    """

    def __init__(self, message: str, retry_seconds: float) -> None:
        super().__init__(message, retry_seconds)
        self.message = message
        self.retry_seconds = retry_seconds

    def __str__(self) -> str:
        return self.message


class IdleStreamError(ServiceError):
    """Nothing came in a stream for longer than the server waits."""


class StartError(ServiceError):
    """The server cannot start. The message says what to change."""


class SettingError(StartError):
    """A setting is wrong, or a file that it names: another try with the same settings is in vain."""


class DeviceRefusedError(StartError):
    """The device that the server is to run on is not there for a worker."""


class ModelRefusedError(StartError):
    """A worker cannot hold one of its models.

    Attributes:
        folder: Where the model lies.
        message: What is wrong with it.
    """

    def __init__(self, folder: Path, message: str) -> None:
        super().__init__(folder, message)
        self.folder = folder
        self.message = message

    def __str__(self) -> str:
        return self.message
