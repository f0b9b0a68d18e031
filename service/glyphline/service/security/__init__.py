"""Who may ask, for how much, and over which connections. `protection` puts it together."""

from glyphline.service.security.callers import client_of

__all__ = ["client_of"]
