import pytest

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DecoderName, decoding_options, image_limits
from glyphline.models.decoding import DecodingOptions
from glyphline.models.image import ImageLimits


def test_nothing_asked_leaves_all_to_the_model() -> None:
    assert decoding_options(None, None) == DecodingOptions()
    assert image_limits(None, None) == ImageLimits()


def test_what_needs_a_beam_asks_for_it() -> None:
    assert decoding_options(None, 5) == DecodingOptions(decoder="beam", beam_width=5)
    assert decoding_options(None, None, 3) == DecodingOptions(decoder="beam", beam_width=10, max_alternatives=3)
    assert decoding_options(DecoderName.BEAM, None, 20).beam_width == 20
    for width, alternatives in ((5, 1), (None, 2)):
        with pytest.raises(CommandError, match="needs --decoder beam"):
            decoding_options(DecoderName.GREEDY, width, alternatives)


def test_limits() -> None:
    assert image_limits(10, None) == ImageLimits(max_bytes=10)
    assert image_limits(None, 10) == ImageLimits(max_pixels=10)
