"""Many hands: bounded, lazy, nothing finished is lost."""

from __future__ import annotations

import threading
import time

import pytest

from assay.errors import ModelError
from assay.models.engines.openai.crew import RequestPool


def crew(work: object, hands: int) -> RequestPool[int, int]:
    return RequestPool(work, hands, threading.Event(), lambda: None)  # type: ignore[arg-type]


def test_every_item_once_with_any_number_of_hands() -> None:
    for hands in (1, 3, 50):
        assert sorted(crew(lambda n: n * n, hands).run(range(20))) == [n * n for n in range(20)]


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

    stream = crew(work, 3).run(range(3))
    found = [next(stream)]
    taken.set()
    finished.wait(30)
    time.sleep(0.2)
    with pytest.raises(ModelError, match="gone"):
        found += stream
    assert found == [0, 2]


def test_an_abandoned_run_leaves_no_thread() -> None:
    others = set(threading.enumerate())
    stream = crew(lambda n: n, 4).run(range(100))
    next(stream)
    assert set(threading.enumerate()) > others
    stream.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= others
