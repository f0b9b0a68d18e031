"""Takes a request apart, and refuses what it does not know: a wrong guess would read the wrong thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from glyphline.models.errors import GlyphlineError
from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.admission import ReadConfig, ReadRequest
from glyphline.service.conversion import MAX_REQUEST_ID_CHARACTERS, reference_text
from glyphline.service.errors import RequestError
from glyphline.service.open_inference.interface import ALTERNATIVES, IMAGE, INPUTS, OUTPUTS, REFERENCE_TEXT, TensorKind
from glyphline.service.open_inference.parameters import Parameters, read_parameters
from glyphline.service.open_inference.tensors import unpack_bytes

__all__ = ["Asked", "read_message", "request_ids", "requests_of"]

_SHOWN = 100  # characters of a caller's word that a message repeats
_SHOWN_LENGTHS = 8  # of a shape


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks.

    Attributes:
        images: The image files.
        references: The true text of each, in UTF-8; None if they are not known.
        parameters: How to read them.
        outputs: What is wanted back, in order.
        raw: Whether elements travel raw.
    """

    images: list[bytes]
    references: list[bytes] | None
    parameters: Parameters
    outputs: tuple[TensorKind, ...]
    raw: bool


def read_message(message: api.ModelInferRequest, max_images: int) -> Asked:
    """Takes a request apart.

    Args:
        message: The request.
        max_images: Most images of a request.

    Raises:
        RequestError: If anything in it is not as it must be. It names the field.
    """
    if len(message.id) > MAX_REQUEST_ID_CHARACTERS:
        raise RequestError("id", f"must have at most {MAX_REQUEST_ID_CHARACTERS} characters, not {len(message.id)}")
    if message.raw_input_contents and len(message.raw_input_contents) != len(message.inputs):
        raise RequestError(
            "raw_input_contents",
            f"must be one for each of the {len(message.inputs)} inputs, not {len(message.raw_input_contents)}",
        )
    elements: dict[TensorKind, list[bytes]] = {}
    for index, tensor in enumerate(message.inputs):
        kind = _input_kind(index, tensor, elements)
        elements[kind] = _elements(message, index, _count(index, tensor, max_images))
    if IMAGE not in elements:
        raise RequestError("inputs", f"lack {IMAGE.name!r}")
    images, references = elements[IMAGE], elements.get(REFERENCE_TEXT)
    if references is not None and len(references) != len(images):
        raise RequestError(
            "inputs", f"have {len(images)} elements of {IMAGE.name} and {len(references)} of {REFERENCE_TEXT.name}"
        )
    parameters = read_parameters(message.parameters)
    raw = bool(message.raw_input_contents) or not images
    return Asked(images, references, parameters, _outputs(message.outputs, parameters), raw)


def request_ids(request_id: str, count: int) -> list[str]:
    """Names every image of a request: the only one as the request, several `id/0`, `id/1` and so on."""
    return [request_id] if count == 1 else [f"{request_id}/{index}" for index in range(count)]


def requests_of(asked: Asked, config: ReadConfig, ids: Iterable[str]) -> list[ReadRequest | GlyphlineError]:
    """Makes what the pipeline takes: of each image a request, or what is wrong with its true text.

    Args:
        asked: What is asked.
        config: How to read.
        ids: Name of each image.
    """
    references: Sequence[bytes | None] = asked.references or [None] * len(asked.images)
    requests: list[ReadRequest | GlyphlineError] = []
    for index, (image, reference, name) in enumerate(zip(asked.images, references, ids, strict=True)):
        try:
            text = None if reference is None else _text(reference, index)
            requests.append(ReadRequest(request_id=name, content=image, config=config, reference=text))
        except RequestError as error:
            requests.append(error)
    return requests


def _input_kind(index: int, tensor: api.ModelInferRequest.InferInputTensor, known: Iterable[TensorKind]) -> TensorKind:
    """Tells which input a tensor is."""
    field = f"inputs[{index}]"
    kind = _named(tensor.name, f"{field}.name", INPUTS, known)
    if tensor.datatype != kind.datatype:
        raise RequestError(
            f"{field}.datatype", f"of {kind.name} must be {kind.datatype}, not {tensor.datatype[:_SHOWN]!r}"
        )
    _refuse_parameters(tensor.parameters, f"{field}.parameters")
    return kind


def _count(index: int, tensor: api.ModelInferRequest.InferInputTensor, max_images: int) -> int:
    """Returns how many elements an input has."""
    field = f"inputs[{index}].shape"
    if len(tensor.shape) != 1:
        shown = list(tensor.shape[:_SHOWN_LENGTHS])
        raise RequestError(field, f"of {tensor.name} must be one length, the number of images, not {shown}")
    count = tensor.shape[0]
    if not 0 <= count <= max_images:
        raise RequestError(field, f"of {tensor.name} must be from 0 to {max_images} images, not {count}")
    return count


def _elements(message: api.ModelInferRequest, index: int, count: int) -> list[bytes]:
    """Returns the elements of an input, from where they are."""
    tensor = message.inputs[index]
    field = f"inputs[{index}].contents"
    filled = [descriptor.name for descriptor, _ in tensor.contents.ListFields()]
    if message.raw_input_contents:
        if filled:
            raise RequestError(field, "must not be set where raw_input_contents are")
        try:
            return unpack_bytes(message.raw_input_contents[index], count)
        except ValueError as error:
            raise RequestError(f"raw_input_contents[{index}]", f"of {tensor.name} {error}") from error
    for name in filled:
        if name != "bytes_contents":
            raise RequestError(f"{field}.{name}", f"must be empty: {tensor.name} has its elements in bytes_contents")
    elements = list(tensor.contents.bytes_contents)
    if len(elements) != count:
        raise RequestError(
            f"{field}.bytes_contents", f"of {tensor.name} has {len(elements)} elements where its shape says {count}"
        )
    return elements


def _outputs(
    wanted: Iterable[api.ModelInferRequest.InferRequestedOutputTensor], parameters: Parameters
) -> tuple[TensorKind, ...]:
    """Returns the outputs that are wanted; if none is named, all that apply."""
    named: list[TensorKind] = []
    for index, output in enumerate(wanted):
        named.append(_named(output.name, f"outputs[{index}].name", OUTPUTS, named))
        _refuse_parameters(output.parameters, f"outputs[{index}].parameters")
    if named:
        return tuple(named)
    several = parameters.options.max_alternatives > 1
    return tuple(kind for kind in OUTPUTS if several or kind is not ALTERNATIVES)


def _named(name: str, field: str, kinds: Iterable[TensorKind], known: Iterable[TensorKind]) -> TensorKind:
    """Finds a tensor by its name, which must be one that there is and that was not there before."""
    found = next((kind for kind in kinds if kind.name == name), None)
    if found is None:
        raise RequestError(field, f"{name[:_SHOWN]!r} is none of {', '.join(kind.name for kind in kinds)}")
    if found in known:
        raise RequestError(field, f"{name!r} is there twice")
    return found


def _refuse_parameters(given: Iterable[str], field: str) -> None:
    """Refuses what would change the meaning of a tensor, such as that its elements are in shared memory."""
    if name := min(given, default=""):
        raise RequestError(field, f"{name[:_SHOWN]!r} is not known: tensors have no parameters here")


def _text(content: bytes, index: int) -> str:
    """Reads a true text."""
    try:
        return reference_text(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(f"{REFERENCE_TEXT.name}[{index}]", "is not UTF-8") from error
