"""The command `glyphline`."""

from glyphline.cli.application import app, main

__all__ = ["app", "main"]
