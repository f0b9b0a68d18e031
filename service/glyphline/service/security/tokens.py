"""Bearer tokens. A file names them by their hashes, so that whoever reads it has no token:

    # name: hash of the token, then what limits it
    counter: sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
    partner: sha256:486ea46224d1bb4fb680f34f7c9ad96a8f24ec88be73ea8e5a6c65260e9cb8a7 read-only images/s=50 bytes/s=5e6

Tokens are made here and not chosen by people: 256 random bits need no salt and no slow hash.
"""  # noqa: D415  (the summary introduces an example)

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from glyphline.service.errors import ServiceError
from glyphline.service.security.watching import Reloadable

__all__ = ["Grant", "TokenFile", "TokenFileError", "new_token", "read_tokens", "token_line"]

_PREFIX = "glyphline_"  # tells people, and tools that search for secrets, what they have found
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_RATES = {"images/s": "images_per_second", "bytes/s": "bytes_per_second"}
_READ_ONLY = "read-only"
_LONGEST_TOKEN = 512  # characters; a longer one is none, and is not hashed


class TokenFileError(ServiceError):
    """The file of tokens cannot be used. The message names the line."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows.

    Attributes:
        name: Whose it is. Several tokens may share a name, as while one replaces another.
        digest: SHA-256 of the token.
        read_only: Whether its bearer may hand in no true texts, which the live error rate is made of.
        images_per_second: Most images a second; None for no limit.
        bytes_per_second: Most bytes of images a second; None for no limit.
    """

    name: str
    digest: bytes
    read_only: bool = False
    images_per_second: float | None = None
    bytes_per_second: float | None = None


class TokenFile(Reloadable):
    """The tokens that a server takes.

    Args:
        path: The file that names them.

    Raises:
        TokenFileError: If it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)

    def find(self, token: str) -> Grant | None:
        """Returns what a token allows; None if it is not known. How long that takes tells nothing of the tokens."""
        if len(token) > _LONGEST_TOKEN:
            return None
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for grant in self._grants:
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        return found

    def _read(self) -> None:
        self._grants = read_tokens(self._paths[0])


def read_tokens(path: Path) -> tuple[Grant, ...]:
    """Reads a file of tokens.

    Raises:
        TokenFileError: If it cannot be read, or a line is none, or it has no token.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TokenFileError(f"{path}: is no text in UTF-8") from error
    grants = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            try:
                grants.append(_grant(words))
            except ValueError as error:
                raise TokenFileError(f"{path}, line {number}: {error}") from error
    if not grants:
        raise TokenFileError(f"{path}: has no token; `glyphline token NAME --file {path}` makes one")
    return tuple(grants)


def new_token() -> str:
    """Makes a token."""
    return _PREFIX + secrets.token_urlsafe(32)


def token_line(
    name: str,
    token: str,
    *,
    read_only: bool = False,
    images_per_second: float | None = None,
    bytes_per_second: float | None = None,
) -> str:
    """Writes the line of a token.

    Raises:
        ValueError: If the name is none, or a rate is none.
    """
    words = [f"{name}: sha256:{hashlib.sha256(token.encode()).hexdigest()}"]
    if read_only:
        words.append(_READ_ONLY)
    for label, rate in (("images/s", images_per_second), ("bytes/s", bytes_per_second)):
        if rate is not None:
            words.append(f"{label}={rate:.12g}")
    line = " ".join(words)
    _grant(line)
    return line


def _grant(line: str) -> Grant:
    """Reads a line.

    Raises:
        ValueError: If it is none. The message never repeats what may be a token.
    """
    name, _, rest = line.partition(":")
    if not _NAME.fullmatch(name.strip()):
        raise ValueError(
            "a line should begin with a name of letters, digits, dots, dashes and underscores, and a colon"
        )
    digest, *options = rest.split() or [""]
    if not (match := _HASH.fullmatch(digest)):
        raise ValueError("after the name there should be sha256: and the 64 hexadecimal digits of the token's hash")
    read_only = False
    rates: dict[str, float] = {}
    for option in options:
        label, _, value = option.partition("=")
        if option == _READ_ONLY:
            read_only = True
        elif label in _RATES:
            rates[_RATES[label]] = _rate(label, value)
        else:
            raise ValueError(f"after the hash there may be {_READ_ONLY}, images/s=N and bytes/s=N, nothing else")
    return Grant(name.strip(), bytes.fromhex(match[1]), read_only, **rates)


def _rate(label: str, value: str) -> float:
    try:
        rate = float(value)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise ValueError(f"{label} should be a number above 0")
    return rate
