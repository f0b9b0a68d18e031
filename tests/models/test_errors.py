import inspect
import pickle

import pytest

from glyphline.models import errors
from glyphline.models.errors import GlyphlineError, ImageError, OptionsError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


def test_the_module_exports_every_error() -> None:
    assert sorted(kind.__name__ for kind in CLASSES) == errors.__all__


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_belongs_to_the_hierarchy_and_says_what_it_is(kind: type[Exception]) -> None:
    assert issubclass(kind, GlyphlineError)
    assert inspect.getdoc(kind)


@pytest.mark.parametrize(
    "name", ["EmptyImageError", "UndecodableImageError", "ImageTooLargeError", "ImageTooWideError"]
)
def test_everything_wrong_with_one_image_can_be_caught_at_once(name: str) -> None:
    assert issubclass(getattr(errors, name), ImageError)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not OptionsError])
def test_errors_cross_processes(kind: type[Exception]) -> None:
    copy = pickle.loads(pickle.dumps(kind("the reason")))
    assert type(copy) is kind
    assert str(copy) == "the reason"


def test_an_options_error_names_its_field_and_keeps_it_across_processes() -> None:
    copy = pickle.loads(pickle.dumps(OptionsError("beam_width", "must be at least 1, not 0")))
    assert isinstance(copy, OptionsError)
    assert copy.field == "beam_width"
    assert copy.message == "must be at least 1, not 0"
    assert str(copy) == "beam_width: must be at least 1, not 0"
