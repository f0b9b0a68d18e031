"""The errors of the domain: one small hierarchy, so that a caller can catch a kind and a server can map each to a code.

Every error survives pickling, because workers send them between processes.
"""

__all__ = [
    "AlphabetError",
    "BundleError",
    "DeviceError",
    "EmptyImageError",
    "GlyphlineError",
    "ImageError",
    "ImageTooLargeError",
    "ImageTooWideError",
    "LabelsError",
    "ModelNotFoundError",
    "OptionsError",
    "PageError",
    "UndecodableImageError",
]


class GlyphlineError(Exception):
    """Anything Glyphline refuses to do, with a message that says what to change."""


class ImageError(GlyphlineError):
    """An image cannot be read. It concerns that one image and no other of its batch."""


class EmptyImageError(ImageError):
    """There is nothing to read: no bytes, or no pixels."""


class UndecodableImageError(ImageError):
    """The bytes are not an image of a supported format, or the image is damaged or cut short."""


class ImageTooLargeError(ImageError):
    """The image has more bytes or more pixels than allowed. The message names the limit and the value."""


class ImageTooWideError(ImageError):
    """The strip is too long for its height. It is refused rather than squashed or cut."""


class AlphabetError(GlyphlineError):
    """An alphabet is malformed, or a text holds characters that the alphabet lacks."""


class LabelsError(GlyphlineError):
    """A label file cannot be read. The message names the file and the place in it.

    Attributes:
        path: The file.
        lines: Numbers of the lines without a tab, each with what stands there; empty where something else is wrong.
    """

    def __init__(self, message: str, path: str = "", lines: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.lines = lines


class PageError(GlyphlineError):
    """A PAGE or ALTO file cannot be read. The message names the file and the line in it."""


class BundleError(GlyphlineError):
    """A bundle is damaged, incomplete or of an unknown schema. The message names the file."""


class ModelNotFoundError(GlyphlineError):
    """No model has the name or version asked for. The message lists those that exist."""


class OptionsError(GlyphlineError):
    """An option has a value that cannot be honoured.

    Attributes:
        field: Name of the option at fault.
        message: What is wrong with it.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)  # both in `args`, which is what pickling hands back to the constructor
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class DeviceError(GlyphlineError):
    """The device asked for is not available, or the runtime silently fell back to another."""
