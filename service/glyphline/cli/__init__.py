"""The command `glyphline`."""
