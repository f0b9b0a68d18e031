"""Who may ask, for how much, and over which connections."""

from glyphline.service.security.callers import client_of

__all__ = ["client_of"]
