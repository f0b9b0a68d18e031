"""What `glyphline data` does: check, describe, show, render, convert, and write a first configuration."""
