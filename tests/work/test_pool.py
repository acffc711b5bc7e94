"""Threads that share a source. If fewer can start than wanted, these do the work."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from assay.errors import SandboxError
from assay.work import pool


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_threads_do_all_of_the_work(count: int, allow_threads: Callable[[int], None]) -> None:
    allow_threads(count)

    def work(item: int, on_idle: Callable[[], None]) -> int:
        on_idle()
        return item

    assert sorted(pool.stream(range(20), work, workers=2, idle_slots=2)) == list(range(20))


def test_no_thread_at_all_is_an_error(allow_threads: Callable[[int], None]) -> None:
    allow_threads(0)
    with pytest.raises(SandboxError, match="no thread can start"):
        list(pool.stream([1], lambda item, _: item, workers=2, idle_slots=2))


def test_threads_start_when_there_is_a_backlog() -> None:
    names: set[str] = set()
    together = threading.Barrier(3)

    def work(batch: list[int], _: Callable[[], None]) -> int:
        names.add(threading.current_thread().name)
        if len(batch) == 2:
            together.wait(60)
        return sum(batch)

    batches = [[1, 2], [1, 2], [1, 2], [5]]
    found = pool.stream(batches, work, 3, wants_more=lambda batch: len(batch) == 2)
    assert sorted(found) == [3, 3, 3, 5]
    assert len(names) == 3


def test_one_thread_does_the_work_if_no_other_can_start(
    allow_threads: Callable[[int], None],
) -> None:
    allow_threads(1)
    found = pool.stream(range(9), lambda item, _: item, 3, wants_more=lambda _: True)
    assert sorted(found) == list(range(9))
