"""Numbers of things in sentences."""

from __future__ import annotations

__all__ = ["counted", "there_are"]


def counted(number: int, noun: str) -> str:
    """Says how many there are of something: `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def there_are(number: int) -> str:
    """Says how many there are of what was named before."""
    return "there is 1" if number == 1 else f"there are {number:,}" if number else "there are none"
