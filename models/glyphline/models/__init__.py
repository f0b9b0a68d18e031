"""Pixels to text: images, bundles, networks in ONNX Runtime, decoding and error rates."""

import os

from glyphline.models.alphabet import Alphabet
from glyphline.models.error_rate import EditCounts, ErrorRate, edit_counts, evaluate_pairs
from glyphline.models.errors import (
    AlphabetError,
    BundleError,
    DeviceError,
    EmptyImageError,
    GlyphlineError,
    ImageError,
    ImageTooLargeError,
    ImageTooWideError,
    ModelNotFoundError,
    OptionsError,
    UndecodableImageError,
)
from glyphline.models.image import (
    GreyImage,
    ImageHeader,
    ImageLimits,
    ImageSettings,
    normalise,
    normalised_width,
    read_header,
    read_image,
)

__all__ = [
    "Alphabet",
    "AlphabetError",
    "BundleError",
    "DeviceError",
    "EditCounts",
    "EmptyImageError",
    "ErrorRate",
    "GlyphlineError",
    "GreyImage",
    "ImageError",
    "ImageHeader",
    "ImageLimits",
    "ImageSettings",
    "ImageTooLargeError",
    "ImageTooWideError",
    "ModelNotFoundError",
    "OptionsError",
    "UndecodableImageError",
    "edit_counts",
    "evaluate_pairs",
    "normalise",
    "normalised_width",
    "read_header",
    "read_image",
]

# Whatever reads images tells nobody: ONNX Runtime, from 1.32 on, sends Microsoft notes of its use unless this is set
# before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
