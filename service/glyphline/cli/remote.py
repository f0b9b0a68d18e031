"""Has pictures read by a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from glyphline.cli.access import ServerAccess
from glyphline.cli.readers import Picture, Reader
from glyphline.models.decoding import DecodingOptions
from glyphline.service.client import RecognitionError
from glyphline.service.client.results import Outcome as ServerOutcome
from glyphline.service.jobs import Row, RowError
from glyphline.service.jobs.engines.server import PICTURE_ERRORS
from glyphline.service.jobs.rows import Outcome


@contextmanager
def server_reader(
    target: str,
    model: str | None,
    version: str | None,
    options: DecodingOptions,
    timeout: float,
    access: ServerAccess = ServerAccess(),  # noqa: B008  (frozen)
) -> Iterator[Reader]:
    """Connects to a server and yields what asks it.

    Args:
        target: Its address.
        model: Name of the model; None is the server's default.
        version: Its version, or a label of it; None is the latest.
        options: How to decode.
        timeout: Seconds that a call may take, further tries included.
        access: Certificates and the token.

    Yields:
        A reader, which raises RecognitionError if the server does not do what is asked.

    Raises:
        RecognitionError: If the server cannot be reached or has no such model.
    """
    with access.client(target, timeout) as client:
        with access.connecting(target):
            info = client.get_model(model or "", version)

        def read(pictures: Sequence[Picture]) -> list[Row]:
            contents = [picture.content for picture in pictures if isinstance(picture.content, bytes)]
            answers = iter(client.recognize_many(contents, model=info.name, version=info.version, options=options))
            outcomes = [
                _outcome(next(answers)) if isinstance(each.content, bytes) else each.content for each in pictures
            ]
            return [
                Row(picture.source, outcome, info.name, info.version)
                for picture, outcome in zip(pictures, outcomes, strict=True)
            ]

        yield read


def _outcome(answer: ServerOutcome) -> Outcome:
    """Keeps what concerns one picture with that picture; all else ends the command."""
    if not isinstance(answer, RecognitionError):
        return answer.reading
    if answer.reason in PICTURE_ERRORS:
        return RowError(PICTURE_ERRORS[answer.reason], answer.message)
    raise answer
