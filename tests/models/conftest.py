"""Recognisers of both heads, from the bundles that come with the package."""

import pytest

from glyphline.models import repository
from glyphline.models.bundle import Bundle
from glyphline.models.recognizer import Recognizer


@pytest.fixture(scope="session")
def recognizers() -> dict[str, Recognizer]:
    """The shipped recogniser of each head."""
    shipped = repository.ModelRepository([repository.pretrained_root()])
    found: dict[str, Recognizer] = {}
    for name in shipped.names():
        recognizer = Recognizer.load(shipped.load(name))
        found.setdefault(recognizer.bundle.manifest.head, recognizer)
    return found


@pytest.fixture(params=["ctc", "attention"])
def recognizer(request: pytest.FixtureRequest, recognizers: dict[str, Recognizer]) -> Recognizer:
    """A recogniser, once of each head."""
    return recognizers[request.param]


@pytest.fixture
def bundle(recognizer: Recognizer) -> Bundle:
    """A bundle, once of each head."""
    return recognizer.bundle
