"""Threads that share a source. If fewer can start than wanted, these do the work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from assay.errors import ModelError, SandboxError
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


def squares(work: Callable[[int], int], hands: int, items: int) -> Iterator[int]:
    """Yield results as an engine does that sends requests to a server."""
    return pool.stream(
        range(items), lambda n, _: work(n), hands, wants_more=lambda _: True, ahead=0,
        stop=lambda: None,
    )  # fmt: skip


def test_every_item_once_with_any_number_of_threads() -> None:
    for hands in (1, 3, 50):
        assert sorted(squares(lambda n: n * n, hands, 20)) == [n * n for n in range(20)]


def test_no_more_is_taken_than_threads_can_work_on() -> None:
    taken: list[int] = []
    found = squares(lambda n: taken.append(n) or n, 3, 100)  # type: ignore[func-returns-value]
    for count in range(1, 20):
        next(found)
        time.sleep(0.005)
        assert len(taken) <= count + 2


def test_what_is_finished_is_given_out_before_a_failure_is_raised() -> None:
    taken, failed, finished = threading.Event(), threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number == 1:
            taken.wait(30)
            failed.set()
            raise ModelError("gone")
        if number == 2:
            failed.wait(30)
            time.sleep(0.2)  # the failure is in the queue by now
            finished.set()
        return number

    found = squares(work, 3, 3)
    results = [next(found)]
    taken.set()
    finished.wait(30)
    time.sleep(0.2)
    with pytest.raises(ModelError, match="gone"):
        results += found
    assert results == [0, 2]


def test_an_abandoned_stream_leaves_no_thread() -> None:
    others = set(threading.enumerate())
    found = squares(lambda n: n, 4, 100)
    next(found)
    assert set(threading.enumerate()) > others
    found.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= others


def test_a_thread_that_hangs_does_not_hold_a_failure_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "STOP_S", 0.1)
    released = threading.Event()

    def work(number: int) -> int:
        if number:
            raise ModelError("gone")
        released.wait(60)
        return number

    with pytest.raises(ModelError, match="gone"):
        list(squares(work, 2, 2))
    released.set()
