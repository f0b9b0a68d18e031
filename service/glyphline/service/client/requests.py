"""What a client sends, and how many images go in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import grpc

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.errors import OptionsError
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.client.errors import InvalidRequestError
from glyphline.service.client.images import ImageInput, encode_image

__all__ = [
    "MAX_MESSAGE_BYTES",
    "Priority",
    "batches",
    "channel_options",
    "make_config",
    "make_item",
    "make_items",
    "make_request",
]

Priority: TypeAlias = Literal["low", "normal", "high"]

MAX_MESSAGE_BYTES = 64 * 2**20
HEALTH_CHECK = "/grpc.health.v1.Health/Check"

_PRIORITIES = {"low": api.PRIORITY_LOW, "normal": api.PRIORITY_NORMAL, "high": api.PRIORITY_HIGH}
_ITEM_OVERHEAD_BYTES = 64  # tags, lengths and ids around the image and the reference


def channel_options(max_message_bytes: int) -> list[tuple[str, int | str]]:
    """Returns the options of a channel: one message limit for both ways, all addresses in turn, no hidden retries."""
    return [
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.enable_retries", 0),
    ]


def make_config(
    model: str, version: int | None, options: DecodingOptions | None, priority: Priority
) -> api.RecognitionConfig:
    """Converts what a caller asks for.

    Raises:
        OptionsError: If a value could be honoured by no model, or cannot be told to a server.
    """
    config = api.RecognitionConfig(
        model=model, model_version="" if version is None else str(version), priority=_PRIORITIES[priority]
    )
    if options is None:
        return config
    options.validate()
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


def make_items(images: Iterable[ImageInput], references: Iterable[str | None] | None) -> Iterator[api.BatchItem]:
    """Builds the items of many images, with the true texts that are known.

    Raises:
        ValueError: If there are more images than texts, or fewer.
    """
    if references is None:
        yield from (make_item(encode_image(image)) for image in images)
    else:
        for image, reference in zip(images, references, strict=True):
            yield make_item(encode_image(image), reference)


def batches(
    items: Iterable[api.BatchItem], *, max_images: int, max_bytes: int
) -> Iterator[list[api.BatchItem] | InvalidRequestError]:
    """Gathers items into calls that neither hold too many images nor exceed the message limit.

    Args:
        items: The items, in order.
        max_images: Most images of a call.
        max_bytes: Largest message.

    Yields:
        The items of a call, or the error of one item that fits into no message.
    """
    batch: list[api.BatchItem] = []
    size = room = max_bytes // 16  # for the configuration
    for item in items:
        item_size = item.ByteSize() + _ITEM_OVERHEAD_BYTES
        if batch and (len(batch) == max_images or size + item_size > max_bytes):
            yield batch
            batch, size = [], room
        if room + item_size > max_bytes:
            yield InvalidRequestError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"an image of {len(item.image.content)} bytes does not fit into a message of {max_bytes} bytes",
                reason="IMAGE_TOO_LARGE",
            )
            continue
        batch.append(item)
        size += item_size
    if batch:
        yield batch
