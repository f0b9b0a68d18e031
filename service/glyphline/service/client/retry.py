"""When a failed request is tried again, and after which pause."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glyphline.service.client.errors import RecognitionError

__all__ = ["RetryPolicy", "is_retryable"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Tries again what may succeed later: an unavailable server, and a full one that suggests a pause.

    Attributes:
        attempts: How often a request is sent at most.
        first_pause: Seconds before the second attempt; each further pause is twice as long.
        longest_pause: Seconds that a pause is at most, unless the server asks for more.
    """

    attempts: int = 6
    first_pause: float = 0.1
    longest_pause: float = 5.0

    def pause(
        self,
        error: RecognitionError,
        attempt: int,
        remaining: float,
        jitter: Callable[[], float] = random.random,
    ) -> float | None:
        """Decides what follows a failed attempt.

        Args:
            error: Why it failed.
            attempt: Its number, from 1.
            remaining: Seconds until the caller's deadline.
            jitter: A number from 0 to 1: clients that failed together must not come back together.

        Returns:
            Seconds to wait before the next attempt; None if there is to be none.
        """
        if not error.retryable or attempt >= self.attempts:
            return None
        pause = min(self.first_pause * 2 ** (attempt - 1), self.longest_pause) * (0.5 + 0.5 * jitter())
        if error.retry_after is not None:
            pause = max(pause, error.retry_after * (1.0 + 0.5 * jitter()))
        return pause if pause < remaining else None

    def batch_pause(self, outcomes: Sequence[object], attempt: int, remaining: float) -> float | None:
        """Decides what follows an attempt at a batch.

        Args:
            outcomes: What became of each item; errors among them.
            attempt: Its number, from 1.
            remaining: Seconds until the caller's deadline.

        Returns:
            The longest pause that one of the items asks for; None if none is to be tried again.
        """
        errors = (outcome for outcome in outcomes if isinstance(outcome, RecognitionError))
        pauses = (self.pause(error, attempt, remaining) for error in errors)
        return max((pause for pause in pauses if pause is not None), default=None)


def is_retryable(outcome: object) -> bool:
    """Tells whether an outcome is an error that may not come again."""
    return isinstance(outcome, RecognitionError) and outcome.retryable
