"""Strips of text of any alphabet, rendered with fonts: words in scenes, print, receipts, handwriting faces."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glyphline.training.augment import draw_lines
from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.faces import Face, load_face, set_line
from glyphline.training.datasets.samples import Grey, Ink, Sample
from glyphline.training.datasets.texts import TextMixture
from glyphline.training.effects import camera, ground, inking
from glyphline.training.effects.geometry import crop, reshape
from glyphline.training.effects.look import STYLES, Look

MASTERS = (26, 40)
"""Sizes at which glyphs are drawn and kept; a line is then brought to the size it is to have."""

_TRIES = 6


@dataclass(frozen=True)
class LetteredStrips:
    """Strips of text drawn with the fonts below some folders.

    Attributes:
        fonts: Font files.
        texts: What is written.
        look: What befalls the strips.
    """

    fonts: tuple[Path, ...]
    texts: TextMixture
    look: Look = field(default_factory=lambda: STYLES["print"])

    def draw(self, random: np.random.Generator) -> Sample:
        """Renders one strip and takes its picture. A font writes only characters that it has."""
        dice = Dice(random)
        path = dice.pick(self.fonts)
        size = dice.between(self.look.least_size, self.look.most_size)
        face = load_face(path, MASTERS[0] if size <= 28 else MASTERS[1])
        text = self.texts.draw(dice, face.characters)
        if face.unicase:
            text = self.texts.fit(text.upper(), face.characters) or text
        ink = self.draw_line(text, face, dice)
        if dice.chance(self.look.matrix):
            ink = inking.as_dots(ink, dice)
        ink = reshape(ink, size / face.size, dice, self.look)
        return Sample(take_picture(ink, dice, self.look), text, path.name)

    def draw_line(self, text: str, face: Face, dice: Dice) -> Ink:
        """Sets one line, `(height, width)`, at the size of the face: spaced, in small capitals or uneven at times."""
        look = self.look
        spacing = 0.0
        if dice.chance(look.spacing):
            spacing = face.size * (dice.between(-0.06, 0.0) if dice.chance(0.25) else 0.7 * dice.unit() ** 2)
        faces = [face]
        if dice.chance(look.small_caps) and text.isupper() and len(text) > 2 and face.size == MASTERS[1]:
            small = load_face(face.path, MASTERS[0])
            faces = [
                face if index == 0 or text[index - 1] == " " or not c.isalpha() else small
                for index, c in enumerate(text)
            ]
        rises: list[float] = []
        if dice.chance(look.uneven):
            amount = face.size * dice.between(0.01, 0.06)
            rises = [dice.normal(amount) for _ in text]
        return set_line(text, faces, spacing, dice.between(0.8, 1.5), rises)


def take_picture(ink: Ink, dice: Dice, look: Look) -> Grey:
    """Puts a drawn line on its ground and takes its picture; tries again, in the end plainly, until it can be seen.

    Args:
        ink: Drawing `(height, width)`.
        dice: Source of randomness.
        look: What befalls it.

    Returns:
        Grey picture `(height, width)`.
    """
    if dice.chance(look.weight):
        ink = inking.reweigh(ink, dice)
    if dice.chance(look.pressure):
        ink = inking.press(ink, dice)
    tall = ink.shape[0]
    ink = crop(ink, dice, look)
    rows = ink.shape[0]
    small = dice.chance(look.low_resolution)
    if small:
        ink = camera.shrink(ink, min(rows, max(8, round(dice.between(8, 20) * rows / min(rows, tall)))))
    clean = dice.chance(look.clean)
    for _ in range(0 if clean else _TRIES):
        worn = ink
        if dice.chance(look.thermal):
            worn = inking.fade(worn, dice)
        if dice.chance(look.rough) and not small:
            rough = inking.roughen(worn, dice)
            if float(rough.sum()) > 0.55 * float(worn.sum()):  # thin strokes would be lost to it
                worn = rough
        picture, seen = _compose(worn, dice, look)
        pixels = _expose(picture, dice, look)
        if camera.is_visible(pixels, seen):
            break
    else:
        paper, pen = dice.between(215, 255), dice.between(0, 60)
        if dice.chance(0.5 * look.dark if look.dark > 0.5 else look.wear.inverted):
            paper, pen = pen, paper
        pixels = np.asarray(paper + (pen - paper) * (ink / np.float32(255)), np.uint8)
    if small and dice.chance(look.enlarged):
        pixels = camera.enlarge(pixels, rows, dice)
    if dice.chance(look.jpeg):
        pixels = camera.as_jpeg(pixels, dice.whole(20, 90))
    return pixels


def _greys(dice: Dice, look: Look) -> tuple[float, float]:
    """Draws the greys of the ground and of the ink: those of two colours, as cameras turn them into grey."""

    def luma(least: float) -> float:
        red, green, blue = (dice.between(least, 255) for _ in range(3))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    if dice.chance(look.dark):
        paper = luma(0) if dice.chance(0.7) else dice.between(0, 60)
    else:
        paper = dice.between(225, 255) if dice.chance(0.7) else luma(130)
    least, most = (28.0, 75.0) if dice.chance(look.faint) else (255 * look.least_contrast, 255.0)
    apart = dice.between(least, most)
    up, down = 255 - paper, paper
    darker = dice.chance(0.5) if look.dark > 0.5 else True
    if (apart > down if darker else apart > up) and look.dark > 0.5:
        darker = down > up
    pen = paper - min(apart, down) if darker else paper + min(apart, up)
    return (255 - paper, 255 - pen) if dice.chance(look.wear.inverted) else (paper, pen)


def _compose(ink: Ink, dice: Dice, look: Look) -> tuple[NDArray[np.float32], Ink]:
    """Puts ink on its ground.

    Returns:
        The picture before the camera has had it, and the ink by which a reader knows the letters.
    """
    height, width = ink.shape
    paper, pen = _greys(dice, look)
    apart = abs(pen - paper)
    picture = _lay_ground(ink, paper, pen, dice, look)
    seen = ink
    cover = ink * np.float32(1 / 255)
    if dice.chance(look.relief):
        seen = _emboss(picture, ink, paper, dice)
        pen = paper + (pen - paper) * dice.between(-0.1, 0.25)
    elif dice.chance(look.shadow):
        _cast(picture, ink, pen, dice)
    hollow = False
    if dice.chance(look.outline) and height > 20:
        rim = inking.swell(ink, 1 if height < 48 else 2)
        hollow = dice.chance(0.4)
        grey = pen if hollow else (255.0 if paper < 128 else 0.0) if dice.chance(0.6) else dice.between(0, 255)
        picture += (np.float32(grey) - picture) * (rim * np.float32(1 / 255))
        if hollow:
            seen = rim - np.minimum(rim, ink)
            pen = paper + (pen - paper) * dice.between(-0.2, 0.5)
    if dice.chance(look.fill):
        tile = ground.texture_tiles()[dice.whole(0, 16)]
        fill = np.float32(pen) + ground.cut_tile(tile, height, width, dice) * np.float32(0.35 * apart * dice.unit())
        picture += (fill - picture) * cover
    else:
        picture += (np.float32(pen) - picture) * cover
    if dice.chance(look.gradient):
        light = ground.slope_of_light(height, width, dice)
        if dice.chance(0.5):
            picture += light * np.float32(dice.between(0.1, 0.6) * apart)
        else:  # shade takes away from ink and ground alike
            picture *= 1 + light * np.float32(dice.between(0.1, 0.45))
    return picture, seen


def _lay_ground(ink: Ink, paper: float, pen: float, dice: Dice, look: Look) -> NDArray[np.float32]:
    """Makes what text stands on: of one grey, with a texture, clutter, the other side of the paper, ruled lines."""
    height, width = ink.shape
    apart = abs(pen - paper)
    picture = np.full((height, width), paper, np.float32)
    if dice.chance(look.texture):
        tiles = ground.texture_tiles()
        tile = dice.pick(tiles) if look.dark > 0.5 else tiles[dice.whole(0, ground.PAPERS)]
        strength = (0.55 if look.dark > 0.5 else 0.25) * apart * dice.unit() ** 1.5
        picture += ground.cut_tile(tile, height, width, dice) * np.float32(strength)
    if dice.chance(look.clutter):
        picture += ground.clutter(height, width, dice) * np.float32(dice.between(0.2, 0.9) * apart)
    if dice.chance(look.bleed):
        behind = ink[::-1, ::-1] if dice.chance(0.5) else ink[:, ::-1]
        picture += behind * np.float32((pen - paper) * dice.between(0.05, 0.3) / 255)
    if dice.chance(look.wear.lines):
        rules = draw_lines(np.zeros_like(ink), dice.random)
        picture += rules * np.float32((pen - paper) * dice.between(0.3, 1.0) / 255)
    return picture


def _cast(picture: NDArray[np.float32], ink: Ink, pen: float, dice: Dice) -> None:
    """Draws the shadow that letters cast, or their sides where they stand out as blocks."""
    height = ink.shape[0]
    reach = max(1.0, 0.09 * height)
    right, down = round(dice.between(-reach, reach)), round(dice.between(0, reach)) or 1
    shade = inking.moved(ink, right, down)
    if dice.chance(0.35):
        shade = np.maximum(shade, inking.moved(ink, round(right / 2), round(down / 2)))
        grey = (pen + dice.between(0, 255)) / 2 if dice.chance(0.5) else dice.between(0, 255)
        share = 1.0
    else:
        grey = 0.0 if dice.chance(0.8) else 255.0
        share = dice.between(0.3, 0.9)
    picture += (np.float32(grey) - picture) * (shade * np.float32(share / 255))


def _emboss(picture: NDArray[np.float32], ink: Ink, paper: float, dice: Dice) -> Ink:
    """Draws the edges of letters that stand out of their ground or are cut into it: one side lit, the other in shade.

    Returns:
        The edge that is further from the ground's grey: what a reader knows the letters by.
    """
    height = ink.shape[0]
    deep = max(1, round(height * dice.between(0.02, 0.07)))
    right, down = dice.pick((-deep, 0, deep)), dice.pick((-deep, deep))
    lit = inking.moved(ink, -right, -down)
    shade = inking.moved(ink, right, down)
    up, low = (255 - paper) * dice.between(0.2, 1.0), paper * dice.between(0.2, 1.0)
    picture += lit * np.float32(up / 255)
    picture += (np.float32(paper - low) - picture) * (shade * np.float32(1 / 255))
    edge = lit if up > low else shade
    return edge - np.minimum(edge, ink)


def _expose(picture: NDArray[np.float32], dice: Dice, look: Look) -> Grey:
    """Takes the picture: out of focus, shaken, grainy, or black and white alone."""
    grime = look.wear.grime
    height, width = picture.shape
    if dice.chance(look.noise * grime):
        amount = 14 * dice.unit() ** 2 + 1
        picture = picture + camera.grain(height, width, amount, dice)
    pixels = np.clip(picture, 0, 255).astype(np.uint8)
    if dice.chance(look.blur * grime):
        pixels = camera.defocus(pixels, look.far_out, dice)
    if dice.chance(look.motion * grime):
        pixels = camera.shake(pixels, dice)
    if dice.chance(look.noise * 0.4 * grime):
        noisy = pixels + camera.grain(height, width, 6 * dice.unit() + 1, dice)
        pixels = np.clip(noisy, 0, 255).astype(np.uint8)
    if dice.chance(look.two_tone * grime):
        middle = (int(pixels.min()) + int(pixels.max())) // 2
        pixels = np.where(pixels >= middle, 255, 0).astype(np.uint8)
    return pixels
