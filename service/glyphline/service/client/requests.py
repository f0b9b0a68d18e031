"""What a client sends, and how many images go in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Literal, TypeAlias

import grpc
from google.protobuf.message import Message

from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.errors import OptionsError
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.client.errors import InputError, InvalidRequestError
from glyphline.service.client.images import ImageInput, load_image

__all__ = [
    "MAX_MESSAGE_BYTES",
    "Priority",
    "batches",
    "channel_options",
    "check_count",
    "check_size",
    "check_timeout",
    "make_config",
    "make_item",
    "make_items",
    "make_request",
    "sized_item",
    "too_large",
    "too_many",
]

Priority: TypeAlias = Literal["low", "normal", "high"]

MAX_MESSAGE_BYTES = 64 * 2**20
# While a call is in progress the other end is asked so often whether it is there, and has as long to answer: else a
# call on a connection that nobody ended, as when a machine is gone, would wait for its whole deadline. A server allows
# pings every 10 s, unless it is told otherwise.
KEEPALIVE_SECONDS = 12.0
# A server that is back is found within this, however long it was away: gRPC's own longest pause is two minutes.
_RECONNECT_SECONDS = 2.0
HEALTH_CHECK = "/grpc.health.v1.Health/Check"

_PRIORITIES: dict[str, api.Priority] = {
    "low": api.PRIORITY_LOW,
    "normal": api.PRIORITY_NORMAL,
    "high": api.PRIORITY_HIGH,
}
_ITEM_OVERHEAD_BYTES = 64  # tags, lengths and ids around the image and the reference


def channel_options(max_message_bytes: int, server_name: str | None = None) -> list[tuple[str, int | str]]:
    """Returns the options of a channel: how large messages are, who is asked, and how soon what is gone is noticed.

    Args:
        max_message_bytes: Largest message, both ways.
        server_name: The name in the server's certificate; None for that of its address.
    """
    named = [] if server_name is None else [("grpc.ssl_target_name_override", server_name)]
    return [
        *named,
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.enable_retries", 0),  # none that are hidden from the caller's policy
        ("grpc.keepalive_time_ms", round(1000 * KEEPALIVE_SECONDS)),
        ("grpc.keepalive_timeout_ms", round(1000 * KEEPALIVE_SECONDS)),
        (
            "grpc.http2.ping_timeout_ms",
            round(1000 * KEEPALIVE_SECONDS),
        ),  # gRPC's own pings, which go first
        ("grpc.http2.max_pings_without_data", 0),  # as many as a long call takes
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", round(1000 * _RECONNECT_SECONDS)),
    ]


def make_config(
    model: str, version: int | str | None, options: DecodingOptions | None, priority: Priority
) -> api.RecognitionConfig:
    """Converts what a caller asks for.

    Raises:
        OptionsError: If a value could be honoured by no model, or cannot be told to a server.
    """
    if priority not in _PRIORITIES:
        raise OptionsError("priority", f"must be {', '.join(_PRIORITIES)}, not {priority!r}")
    config = api.RecognitionConfig(
        model=model, model_version="" if version is None else str(version), priority=_PRIORITIES[priority]
    )
    if options is None:
        return config
    options.validate()
    if isinstance(options.language_model, CharacterModel):
        raise OptionsError("language_model", "cannot be sent to a server: name one that it has loaded")
    if options.length_penalty is not None and options.decoder != "beam":
        raise OptionsError("length_penalty", "can be asked of a server only together with decoder='beam'")
    if options.decoder == "greedy":
        config.greedy.SetInParent()
    elif options.decoder == "beam":
        config.beam_search.beam_width = options.beam_width
        if options.length_penalty is not None:
            config.beam_search.length_penalty = options.length_penalty
    config.max_alternatives = options.max_alternatives
    config.max_output_length = options.max_output_length or 0
    if options.allowed_characters is not None:
        config.allowed_characters = options.allowed_characters
    if options.lexicon is not None:
        config.lexicon.several_words = options.several_words
        if isinstance(options.lexicon, str):
            config.lexicon.name = options.lexicon
        else:
            config.lexicon.words.extend(options.lexicon.words)
    if options.language_model is not None:
        config.language_model.name = options.language_model
        config.language_model.weight = options.language_model_weight
    config.length_bonus = options.length_bonus
    config.enable_token_details = options.token_details
    return config


def make_request(
    content: bytes, config: api.RecognitionConfig, reference: str | None, request_id: str
) -> api.RecognizeRequest:
    """Builds the request of one image."""
    return api.RecognizeRequest(
        image=api.Image(content=content), config=config, reference_text=reference, request_id=request_id
    )


def make_item(content: bytes, reference: str | None = None, item_id: str = "") -> api.BatchItem:
    """Builds an item of a batch or stream."""
    return api.BatchItem(id=item_id, image=api.Image(content=content), reference_text=reference)


def check_timeout(timeout: float) -> float:
    """Returns a time that a call may take.

    Raises:
        OptionsError: If it is none.
    """
    if not timeout > 0:  # nor is NaN
        raise OptionsError("timeout", f"must be more than 0 seconds, not {timeout:g}")
    return timeout


def check_count(field: str, value: int) -> None:
    """Refuses a number of things that is none.

    Raises:
        OptionsError: If it is less than 1.
    """
    if value < 1:
        raise OptionsError(field, f"must be at least 1, not {value}")


def check_size(content: bytes, message: Message, max_bytes: int) -> None:
    """Refuses an image that fits into no message.

    Raises:
        InvalidRequestError: If so; it names the limit.
    """
    if message.ByteSize() > max_bytes:
        raise too_large(content, max_bytes)


def too_large(content: bytes, max_bytes: int) -> InvalidRequestError:
    """Says that an image fits into no message."""
    return InvalidRequestError(
        grpc.StatusCode.INVALID_ARGUMENT,
        f"an image of {len(content)} bytes is too large: a message has at most {max_bytes} bytes",
        reason="IMAGE_TOO_LARGE",
    )


def sized_item(content: bytes, item_id: str, max_bytes: int) -> api.BatchItem:
    """Builds an item of a stream.

    Raises:
        InvalidRequestError: If the image fits into no message; it names the limit.
    """
    item = make_item(content, item_id=item_id)
    check_size(content, api.StreamingRecognizeRequest(item=item), max_bytes)
    return item


def too_many(error: InvalidRequestError, items: Sequence[api.BatchItem]) -> bool:
    """Tells whether a call failed only because the server takes fewer items, or bytes, at once."""
    of_items = any(violation.field == "items" for violation in error.field_violations)
    return len(items) > 1 and (of_items or error.reason == "MESSAGE_TOO_LARGE")


def make_items(
    images: Iterable[ImageInput], references: Iterable[str | None] | None
) -> Iterator[api.BatchItem | InputError]:
    """Builds the items of many images, with the true texts that are known.

    Yields:
        An item, or the error of an input that is no image.

    Raises:
        ValueError: If there are more images than texts, or fewer.
    """
    texts = repeat(None) if references is None else references
    for image, reference in zip(images, texts, strict=references is not None):
        try:
            yield make_item(load_image(image), reference)
        except InputError as error:
            yield error


def batches(
    items: Iterable[api.BatchItem | InputError], *, max_images: int, max_bytes: int
) -> Iterator[list[api.BatchItem] | InvalidRequestError]:
    """Gathers items into calls that neither hold too many images nor exceed the message limit.

    Args:
        items: The items, in order, and the errors of inputs that came to none.
        max_images: Most images of a call.
        max_bytes: Largest message.

    Yields:
        The items of a call, or the error of one item that cannot be sent.
    """
    batch: list[api.BatchItem] = []
    size = room = max_bytes // 16  # for the configuration
    for item in items:
        if isinstance(item, InputError):
            if batch:
                yield batch
                batch, size = [], room
            yield item
            continue
        item_size = item.ByteSize() + _ITEM_OVERHEAD_BYTES
        if batch and (len(batch) == max_images or size + item_size > max_bytes):
            yield batch
            batch, size = [], room
        if room + item_size > max_bytes:
            yield too_large(item.image.content, max_bytes)
            continue
        batch.append(item)
        size += item_size
    if batch:
        yield batch
