"""Threads that judge: where the system allows fewer than wanted, those that started do the work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.errors import SandboxError
from assay.work import pool


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_threads_do_all_of_the_work(count: int, allow_threads: Callable[[int], None]) -> None:
    """On the old code a thread that could not start ended the run or was waited for for ever."""
    allow_threads(count)

    def work(item: int, doze: Callable[[], None]) -> int:
        doze()
        return item

    assert sorted(pool.stream(range(20), work, workers=2, idle_slots=2)) == list(range(20))


def test_no_thread_at_all_is_an_error(allow_threads: Callable[[int], None]) -> None:
    allow_threads(0)
    with pytest.raises(SandboxError, match="no thread can start"):
        list(pool.stream([1], lambda item, _: item, workers=2, idle_slots=2))
