"""A source that is read ahead, up to a size."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from assay.work.ahead import ReadAhead


def test_items_come_in_their_order_with_a_pause_before_every_wait() -> None:
    def source() -> Iterator[str]:
        yield "a"
        time.sleep(0.2)
        yield "b"

    with ReadAhead(source(), len, 10) as items:
        time.sleep(0.05)
        assert list(items)[-2:] == [None, "b"]


def test_a_slow_reader_holds_the_source_back_by_size() -> None:
    taken: list[int] = []

    def source() -> Iterator[str]:
        for number in range(20):
            taken.append(number)
            yield "x" * 10

    with ReadAhead(source(), len, 25) as items:
        deadline = time.monotonic() + 10
        while len(taken) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(taken) == 4  # three wait, and the source holds one more
        assert [item for item in items if item is not None] == ["x" * 10] * 20


def test_what_came_before_a_failure_is_given_first() -> None:
    stopped: list[bool] = []

    def source() -> Iterator[str]:
        yield "a"
        raise ValueError("broken")

    found: list[str | None] = []
    with (
        pytest.raises(ValueError, match="broken"),
        ReadAhead(source(), len, 10, lambda: stopped.append(True)) as items,
    ):
        found.extend(iter(items))
    assert stopped == [True]


def test_a_source_that_waits_is_stopped_with_the_block() -> None:
    woken = threading.Event()

    def source() -> Iterator[str]:
        yield "a"
        assert woken.wait(10)
        yield "b"

    with ReadAhead(source(), len, 10, woken.set) as items:
        iterator = iter(items)
        assert next(item for item in iterator if item is not None) == "a"
    assert woken.is_set()
    assert list(iterator) == []


def test_a_source_that_ends_is_not_stopped() -> None:
    stopped: list[bool] = []
    with ReadAhead(iter(["a"]), len, 10, lambda: stopped.append(True)) as items:
        assert [item for item in items if item is not None] == ["a"]
    assert stopped == []
