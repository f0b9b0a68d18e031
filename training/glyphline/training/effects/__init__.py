"""What befalls a drawn line of text until it is a picture: shape, ink, ground, camera. Each effect is a function."""

from glyphline.training.effects.look import STYLES, Look, Style

__all__ = ["STYLES", "Look", "Style"]
