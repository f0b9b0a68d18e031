"""How strips of text look: what befalls them and how often, for scenes, print, receipts and the pen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from glyphline.training.augment import Wear

Style = Literal["print", "scene", "receipt", "pen"]


@dataclass(frozen=True, slots=True)
class Look:
    """What befalls a strip of text; every number is a probability or a greatest amount.

    Attributes:
        wear: Slant, slope, ruled lines, polarity and margins, as for other strips. Its `grime` is the factor of all
            probabilities of the camera here.
        clean: Probability that nothing befalls a strip but its shape: dark on light, or light on dark in scenes.
        least_size: Least size of the type in the picture, in pixels from line to line.
        most_size: Greatest size of the type.
        low_resolution: Probability that the letters are only 8 to 20 pixels high.
        enlarged: Share of these that are brought back to their size, as viewers and scanners do.
        spacing: Probability that letters are set wide apart, up to 0.7 of their size, or tight.
        squeeze: Standard deviation of the logarithm of the horizontal stretch.
        small_caps: Probability that a word of capitals has a greater one first.
        uneven: Probability that letters dance about the base line.
        curved: Probability that the base line is an arc or a wave.
        perspective: Greatest displacement of the strip's corners, as a share of its height.
        weight: Probability that strokes are made thicker or thinner.
        outline: Probability that letters have an outline in another grey; half of them are hollow.
        shadow: Probability that letters cast a shadow or stand out as blocks.
        relief: Probability that letters have nearly the grey of their ground, and are seen by lit and shaded edges.
        fill: Probability that the ink itself has a texture.
        texture: Probability that the ground has a texture.
        gradient: Probability that light falls off along the strip.
        clutter: Probability of edges, frames and blots about the text.
        faint: Probability that ink and ground are near each other.
        least_contrast: Least difference of ink and ground otherwise, as a share of the whole range.
        dark: Share of grounds that are any grey at all; the others are light, as paper is.
        motion: Probability that the camera was moved.
        blur: Probability that it was out of focus.
        far_out: Share of these that are far out of focus: letters are known by their bulk alone.
        noise: Probability of grain.
        jpeg: Probability of traces of compression.
        matrix: Probability that characters are made of dots.
        thermal: Probability that the print has faded, with rows that dropped out.
        rough: Probability that edges are rough, as in copies of copies.
        two_tone: Probability that the picture is black and white alone.
        pressure: Probability that strokes swell and thin as a pen's do.
        bleed: Probability that the other side of the paper shows.
        neighbours: Probability that lines above or below reach into the strip.
        cropped: Probability that the crop cuts into the text by a row or two.
    """

    wear: Wear = field(default_factory=Wear)
    clean: float = 0.15
    least_size: float = 20.0
    most_size: float = 40.0
    low_resolution: float = 0.1
    enlarged: float = 0.4
    spacing: float = 0.15
    squeeze: float = 0.1
    small_caps: float = 0.0
    uneven: float = 0.0
    curved: float = 0.0
    perspective: float = 0.0
    weight: float = 0.2
    outline: float = 0.0
    shadow: float = 0.0
    relief: float = 0.0
    fill: float = 0.0
    texture: float = 0.2
    gradient: float = 0.2
    clutter: float = 0.0
    faint: float = 0.1
    least_contrast: float = 0.4
    dark: float = 0.1
    motion: float = 0.02
    blur: float = 0.25
    far_out: float = 0.0
    noise: float = 0.35
    jpeg: float = 0.12
    matrix: float = 0.0
    thermal: float = 0.0
    rough: float = 0.1
    two_tone: float = 0.05
    pressure: float = 0.0
    bleed: float = 0.08
    neighbours: float = 0.12
    cropped: float = 0.03


STYLES: dict[Style, Look] = {
    "print": Look(
        wear=Wear(slant=0.18, rotation=0.012, elastic=0.0, lines=0.05, inverted=0.04, tight=0.35, loose=0.6),
        clean=0.35,
        neighbours=0.25,
    ),
    "scene": Look(
        wear=Wear(slant=0.3, rotation=0.06, elastic=0.0, lines=0.03, inverted=0.0, tight=0.5, loose=0.35),
        clean=0.1,
        least_size=18.0,
        most_size=48.0,
        low_resolution=0.22,
        enlarged=0.5,
        spacing=0.32,
        squeeze=0.2,
        small_caps=0.12,
        uneven=0.06,
        curved=0.14,
        perspective=0.14,
        weight=0.3,
        outline=0.12,
        shadow=0.2,
        relief=0.03,
        fill=0.15,
        texture=0.5,
        gradient=0.4,
        clutter=0.22,
        faint=0.22,
        least_contrast=0.25,
        dark=0.8,
        motion=0.06,
        blur=0.45,
        far_out=0.15,
        noise=0.45,
        jpeg=0.22,
        rough=0.05,
        two_tone=0.01,
        bleed=0.0,
        neighbours=0.12,
        cropped=0.08,
    ),
    "receipt": Look(
        wear=Wear(slant=0.08, rotation=0.012, elastic=0.0, lines=0.04, inverted=0.02, tight=0.5, loose=0.35),
        least_size=16.0,
        most_size=34.0,
        low_resolution=0.2,
        spacing=0.25,
        squeeze=0.22,
        weight=0.3,
        texture=0.2,
        faint=0.3,
        least_contrast=0.35,
        dark=0.02,
        blur=0.35,
        noise=0.4,
        matrix=0.18,
        thermal=0.4,
        rough=0.35,
        two_tone=0.12,
        bleed=0.03,
        neighbours=0.25,
        cropped=0.06,
    ),
    "pen": Look(
        wear=Wear(slant=0.5, rotation=0.03, elastic=0.03, lines=0.15, inverted=0.04, tight=0.25, loose=0.8),
        least_size=24.0,
        most_size=52.0,
        low_resolution=0.06,
        spacing=0.15,
        squeeze=0.18,
        uneven=0.3,
        curved=0.2,
        weight=0.45,
        texture=0.3,
        gradient=0.25,
        faint=0.25,
        least_contrast=0.3,
        dark=0.06,
        rough=0.1,
        pressure=0.5,
        bleed=0.08,
        neighbours=0.12,
        cropped=0.04,
    ),
}
"""The look of strips by where they come from."""
