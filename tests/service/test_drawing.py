import numpy as np
import pytest

from glyphline.models.decoding import Alternative, Reading, Token
from glyphline.models.image import GreyImage
from glyphline.service.drawing import draw_reading


def reading(*tokens: Token, text: str = "17", confidence: float = 0.9) -> Reading:
    return Reading(text, confidence, (Alternative(text, confidence, -0.1, tokens),))


def test_boxes_stand_where_the_spans_are() -> None:
    image = GreyImage(np.full((30, 100), 255, np.uint8))
    drawing = draw_reading(image, reading(Token("1", 1.0, (10, 30)), Token("7", 0.2, (50, 90))))
    pixels = np.asarray(drawing).astype(int)
    middle = pixels[12 + 60]  # half-way down the strip, which is drawn at four times its size from (12, 12)
    green = np.flatnonzero((middle[:, 1] > 120) & (middle[:, 0] < 60))
    red = np.flatnonzero((middle[:, 0] > 150) & (middle[:, 1] < 60))
    for edges, (left, right) in ((green, (10, 30)), (red, (50, 90))):
        assert abs(edges.min() - (12 + 4 * left)) <= 1
        assert abs(edges.max() - (12 + 4 * right)) <= 1


@pytest.mark.parametrize("shape", [(1, 1), (3, 900), (900, 3), (40, 40)])
def test_any_shape_can_be_drawn(shape: tuple[int, int]) -> None:
    image = GreyImage(np.zeros(shape, np.uint8))
    crowded = [Token(character, 0.5, (0.0, shape[1] / 2)) for character in "01 €字"]
    drawing = draw_reading(image, reading(*crowded, Token("9", 0.7, None), text="01 €字9" * 30), "digits 1")
    assert drawing.height > 120
    assert drawing.width > 360


def test_a_blank_reading_can_be_drawn() -> None:
    assert draw_reading(GreyImage(np.zeros((40, 80), np.uint8)), reading(text="", confidence=1.0))


def test_labels_at_the_edges_are_not_cut() -> None:
    image = GreyImage(np.full((30, 100), 128, np.uint8))
    drawing = draw_reading(image, reading(Token("8", 1.0, (0.0, 0.1)), Token("8", 1.0, (99.9, 100.0)), text=""))
    labels = np.asarray(drawing)[12 + 120 + 6 : -60].min(axis=(0, 2))
    assert labels[0] == labels[-1] == 255
