"""Limit requests and tokens per minute, and compute the wait before a retry."""

from __future__ import annotations

import email.utils
import random
import threading
import time
from datetime import UTC, datetime

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LOOK_AGAIN_S = 0.5


class RateLimiter:
    """A limit that spreads requests evenly over the minute, from any thread; 0 means none."""

    def __init__(self, requests_per_minute: float, tokens_per_minute: float) -> None:
        self._request_s = 60 / requests_per_minute if requests_per_minute else 0.0
        self._token_s = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._requests_from = self._tokens_from = self._held_until = 0.0
        self._lock = threading.Lock()

    def wait_s(self, tokens: int) -> float:
        """Return 0 and admit the request, or return the seconds to wait before asking again."""
        with self._lock:
            now = time.monotonic()
            wait = max(self._requests_from, self._tokens_from, self._held_until) - now
            if wait > 0:
                # Others may give tokens back in the meantime.
                return min(wait, LOOK_AGAIN_S)
            self._requests_from = now + self._request_s
            self._tokens_from = max(self._tokens_from, now) + tokens * self._token_s
            return 0.0

    def settle(self, estimate: int, used: int) -> None:
        """Correct the count of an admitted request from ``estimate`` to ``used`` tokens."""
        with self._lock:
            self._tokens_from -= (estimate - used) * self._token_s

    def hold(self, seconds: float) -> None:
        """Admit nothing for so many seconds, as the server demands."""
        with self._lock:
            self._held_until = max(self._held_until, time.monotonic() + seconds)


def pause_s(failed: int) -> float:
    """Return the seconds before the next try: doubled after each failure, with jitter."""
    return random.uniform(0.5, 1.5) * min(FIRST_PAUSE_S * 2.0 ** (failed - 1), LONGEST_PAUSE_S)


def retry_after_s(header: str, now: datetime | None = None) -> float:
    """Return the seconds in a Retry-After header, a number or a date; 0 if it is not valid."""
    try:
        return max(0.0, float(header)) if float(header) < float("inf") else 0.0
    except ValueError:
        pass
    try:
        until = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
