"""Who is alone: at first, for a bounded time, and never at the cost of all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from assay.work import lock
from assay.work.lock import RWLock, ThreadRWLock, open_file_lock

Opened = Callable[[], RWLock]
BOTH = pytest.mark.parametrize("opened", [ThreadRWLock, open_file_lock])
SHORT_S = 0.3


class Visitor(threading.Thread):
    """Enter, stay until told to leave, and note both times."""

    def __init__(self, place: AbstractContextManager[None]) -> None:
        super().__init__(daemon=True)
        self._place = place
        self._leave = threading.Event()
        self.inside = threading.Event()
        self.entered_s = 0.0
        self.start()

    def run(self) -> None:
        with self._place:
            self.entered_s = time.monotonic()
            self.inside.set()
            assert self._leave.wait(60)

    def enters(self, seconds: float = 60.0) -> bool:
        return self.inside.wait(seconds)

    def leave(self) -> None:
        self._leave.set()
        self.join()


@BOTH
def test_one_is_alone_at_first_and_later_beside_others(opened: Opened) -> None:
    doors, began = opened(), time.monotonic()
    alone = Visitor(doors.exclusive_for(3 * SHORT_S))
    assert alone.enters()
    other = Visitor(doors.shared())
    assert other.enters()
    assert other.entered_s - began >= 3 * SHORT_S
    assert alone.is_alive()
    for one in (alone, other):
        one.leave()


@BOTH
def test_one_waits_until_all_have_left(opened: Opened) -> None:
    doors = opened()
    other = Visitor(doors.shared())
    assert other.enters()
    alone = Visitor(doors.exclusive_for(60))
    assert not alone.enters(SHORT_S)
    other.leave()
    assert alone.enters()
    late = Visitor(doors.shared())
    assert not late.enters(SHORT_S)
    alone.leave()
    assert late.enters()
    late.leave()


@BOTH
def test_others_go_on_while_one_inside_stays(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stays for minutes, and one that waits to be alone, must not stop everybody."""
    monkeypatch.setattr(lock, "DRAIN_S", SHORT_S)
    doors = opened()
    slow = Visitor(doors.shared())
    assert slow.enters()
    alone = Visitor(doors.exclusive_for(60))
    time.sleep(SHORT_S / 3)
    for _ in range(3):
        other = Visitor(doors.shared())
        assert other.enters(), "held back by one that waits"
        other.leave()
    assert not alone.inside.is_set()
    slow.leave()
    assert alone.enters()
    alone.leave()


@BOTH
def test_others_get_as_long_as_they_were_held_back(opened: Opened) -> None:
    """Many that want to be alone, one after the other, leave half of the time to the rest."""
    doors = opened()
    first = Visitor(doors.exclusive_for(60))
    assert first.enters()
    waiting = [Visitor(doors.exclusive_for(60)), Visitor(doors.exclusive_for(60))]
    other = Visitor(doors.shared())
    assert not other.enters(2 * SHORT_S)
    first.leave()
    released = time.monotonic()
    assert other.enters()
    other.leave()
    while not any(one.inside.is_set() for one in waiting):
        time.sleep(0.01)
    second = next(one for one in waiting if one.inside.is_set())
    assert second.entered_s > other.entered_s
    assert second.entered_s - released >= SHORT_S
    second.leave()
    (third,) = (one for one in waiting if one is not second)
    assert third.enters()
    third.leave()


@BOTH
def test_nobody_rests_if_nobody_was_held_back(opened: Opened) -> None:
    doors = opened()
    for _ in range(3):
        with doors.exclusive_for(60):
            pass
        assert doors._state().pause() == (0.0, False)
