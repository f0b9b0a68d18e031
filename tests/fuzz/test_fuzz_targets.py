"""The fuzz targets find no fault in what they begin with, and a fault where there is one. They need no atheris here."""

from __future__ import annotations

import random
from collections.abc import Iterator

import fuzz_images
import fuzz_requests
import pytest
from message_changes import change_message

from glyphline.models.image import GreyImage, ImageLimits, read_image

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def target() -> Iterator[fuzz_requests.Target]:
    opened = fuzz_requests.Target()
    yield opened
    opened.close()


def test_every_first_image_is_read() -> None:
    contents = list(fuzz_images.seeds())
    assert len(contents) > 50
    for content in contents:
        assert read_image(content).width > 0
        fuzz_images.check(content)
        fuzz_images.check(content[:-1])


def test_a_fault_of_the_images_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(content: bytes, limits: ImageLimits) -> GreyImage:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz_images, "read_image", read)
    with pytest.raises(ZeroDivisionError):
        fuzz_images.check(next(fuzz_images.seeds()))


def test_every_first_request_is_answered(target: fuzz_requests.Target) -> None:
    methods = []
    for content in fuzz_requests.seeds():
        method, messages = fuzz_requests.parse(content)
        assert fuzz_requests.build(content[0], messages) == content
        methods.append(method)
        target(content)
    assert set(methods) == {method for method, _ in fuzz_requests.METHODS}


def test_changed_requests_are_answered_or_refused(target: fuzz_requests.Target) -> None:
    choose = random.Random(1)
    contents = list(fuzz_requests.seeds())
    for _ in range(60):
        content = choose.choice(contents)
        _, messages = fuzz_requests.parse(content)
        for _ in range(choose.randint(1, 5)):
            change_message(choose.choice(messages), choose, fuzz_requests.IMAGES)
        target(fuzz_requests.build(content[0], messages))


@pytest.mark.parametrize("content", [b"", b"\0", b"\1\xff", b"\2\0\5ab", b"\3\x08", b"\xff" * 40], ids=range(6))
def test_what_is_no_request_is_passed_over(target: fuzz_requests.Target, content: bytes) -> None:
    target(content)


def test_a_fault_of_the_server_is_found(target: fuzz_requests.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("glyphline.service.conversion.response_message", convert)
    with pytest.raises(AssertionError, match="INTERNAL"):
        target(next(fuzz_requests.seeds()))
