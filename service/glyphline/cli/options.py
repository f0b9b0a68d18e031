"""Options that several commands share, so that they are spelled and explained once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError

if TYPE_CHECKING:
    from glyphline.models.decoding import DecodingOptions
    from glyphline.models.image import ImageLimits

DEFAULT_BEAM_WIDTH = 10


class DecoderName(StrEnum):
    """How the characters are chosen."""

    GREEDY = "greedy"
    BEAM = "beam"


class ProviderName(StrEnum):
    """What runs the network on its device."""

    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"
    TENSORRT = "tensorrt"


class PrecisionName(StrEnum):
    """The numbers that the network computes in."""

    FP32 = "fp32"
    INT8 = "int8"


ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME|FOLDER",
        help="Name of a model (`glyphline models` lists them), or the folder of a bundle.  [default: digits]",
    ),
]
AskedModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME|FOLDER",
        help="Name of a model (`glyphline models` lists them), or the folder of a bundle.  [default: digits; with "
        "--server, the server's own default]",
    ),
]
VersionOption = Annotated[
    int | None, typer.Option("--model-version", metavar="N", help="Version of the model.  [default: the latest]")
]
AskedVersionOption = Annotated[
    str | None,
    typer.Option(
        "--model-version",
        metavar="N|LABEL",
        help="Version of the model; with --server also one of its labels, such as stable.  [default: the latest]",
    ),
]
DataRootOption = Annotated[
    Path,
    typer.Option(
        "--data-root",
        metavar="DIR",
        envvar="GLYPHLINE_DATA_ROOT",
        help="Folder that the data of named sets and of configurations are below; absolute paths need none.",
    ),
]
RepositoryOption = Annotated[
    Path | None,
    typer.Option(
        "--model-repository",
        metavar="DIR",
        envvar="GLYPHLINE_MODEL_REPOSITORY",
        help="Folder of models, `<name>/<version>/manifest.json`.  [default: the models that come with Glyphline]",
    ),
]


def _check_device(value: str) -> str:
    """Refuses what is no device, and several at once."""
    from glyphline.models.devices import gpu_number
    from glyphline.models.errors import DeviceError

    try:
        gpu_number(value)
    except DeviceError as error:
        raise typer.BadParameter(str(error)) from error
    return value


DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="cpu|cuda|cuda:N",
        callback=_check_device,
        help="Where the network runs: the CPU, the first GPU, or GPU N.",
    ),
]
ProviderOption = Annotated[
    ProviderName,
    typer.Option(
        "--provider",
        help="What runs the network there: on the CPU openvino is faster on many pictures and needs the extra "
        "`openvino`; on a GPU tensorrt needs TensorRT.",
    ),
]
PrecisionOption = Annotated[
    PrecisionName,
    typer.Option("--precision", help="int8 is faster, where the model has it (`glyphline quantise`)."),
]
FallbackOption = Annotated[
    bool, typer.Option("--allow-cpu-fallback", help="Use the CPU if the device is not there, instead of failing.")
]
DecoderOption = Annotated[
    DecoderName | None,
    typer.Option(
        "--decoder",
        help="greedy takes the best character at each step, beam searches whole texts.  [default: the model's own]",
    ),
]
BeamWidthOption = Annotated[
    int | None,
    typer.Option(
        "--beam-width", metavar="N", min=1, help=f"Texts the beam search keeps.  [default: {DEFAULT_BEAM_WIDTH}]"
    ),
]
AlternativesOption = Annotated[
    int,
    typer.Option(
        "--alternatives",
        "-n",
        metavar="N",
        min=1,
        help="Give up to N readings an image, best first by the decoder's score; confidences may be in another order.",
    ),
]
AllowedOption = Annotated[
    str | None,
    typer.Option("--allowed", metavar="CHARS", help="Read only these characters, as in --allowed 0123456789."),
]
TokensOption = Annotated[
    bool, typer.Option("--tokens", help="Add every character with its confidence and its span in pixels to the JSON.")
]
MaxPixelsOption = Annotated[
    int | None, typer.Option("--max-pixels", metavar="N", min=1, help="Largest image.  [default: 25,000,000]")
]
MaxBytesOption = Annotated[
    int | None, typer.Option("--max-bytes", metavar="N", min=1, help="Largest file.  [default: 20 MiB]")
]


def decoding_options(
    decoder: DecoderName | None,
    beam_width: int | None,
    alternatives: int = 1,
    allowed: str | None = None,
    tokens: bool = False,
) -> DecodingOptions:
    """Builds decoding options from those of the command line.

    What only the beam search can do asks for it: a beam width, or more than one alternative.

    Raises:
        CommandError: If that is asked of the greedy decoder, or more alternatives than a beam can hold.
    """
    from glyphline.models.decoding import MAX_BEAM_WIDTH, DecodingOptions

    if alternatives > MAX_BEAM_WIDTH:  # else it would be said of the beam, which follows from them
        raise CommandError(f"--alternatives: must be from 1 to {MAX_BEAM_WIDTH}, not {alternatives}")

    needs_beam = "--beam-width" if beam_width is not None else "--alternatives" if alternatives > 1 else None
    if needs_beam and decoder is DecoderName.GREEDY:
        raise CommandError(f"{needs_beam} needs --decoder beam: the greedy decoder follows one text only")
    if needs_beam:
        decoder = DecoderName.BEAM
    return DecodingOptions(
        decoder=None if decoder is None else decoder.value,
        beam_width=max(DEFAULT_BEAM_WIDTH, alternatives) if beam_width is None else beam_width,
        max_alternatives=alternatives,
        allowed_characters=allowed,
        token_details=tokens,
    )


def image_limits(max_bytes: int | None, max_pixels: int | None) -> ImageLimits:
    """Builds image limits from those of the command line."""
    from glyphline.models.image import ImageLimits

    usual = ImageLimits()
    return ImageLimits(max_bytes or usual.max_bytes, max_pixels or usual.max_pixels)
