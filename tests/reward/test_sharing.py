"""One judge per process: batches of many threads, copies, forks."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.reward.sharing import Batcher, PerProcess


@given(st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=12))
def test_every_thread_gets_its_own_results(calls: list[list[int]]) -> None:
    batcher = Batcher[int, int](lambda numbers: [-number for number in numbers])
    found: dict[int, Sequence[int]] = {}

    def run(place: int) -> None:
        found[place] = batcher.run(calls[place])

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[place] for place in range(len(calls))] == [[-n for n in call] for call in calls]


def test_calls_that_come_while_a_batch_runs_are_one_batch() -> None:
    sizes: list[int] = []
    started, may_end = threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> Sequence[int]:
        sizes.append(len(items))
        started.set()
        assert may_end.wait(20)
        return items

    batcher = Batcher[int, int](work)
    threads = [threading.Thread(target=batcher.run, args=([n],)) for n in range(9)]
    threads[0].start()
    assert started.wait(20)
    for thread in threads[1:]:
        thread.start()
    while len(batcher._waiting) < 8:
        pass
    may_end.set()
    for thread in threads:
        thread.join()
    assert sizes == [1, 8]


def test_an_error_reaches_the_caller_and_the_next_batch_is_tried() -> None:
    def work(items: Sequence[int]) -> Sequence[float]:
        return [1 / item for item in items]

    batcher = Batcher[int, float](work)
    with pytest.raises(ZeroDivisionError):
        batcher.run([0])
    assert batcher.run([2]) == [0.5]


def test_a_copy_makes_a_value_of_its_own() -> None:
    held = PerProcess[list[int]]()
    value = held.get(list)
    assert held.get(list) is value
    for other in (copy.deepcopy(held), copy.copy(held), pickle.loads(pickle.dumps(held))):
        assert other.get(list) is not value
    assert held.take() is value
    assert held.take() is None


def test_a_forked_process_makes_a_value_of_its_own() -> None:
    held = PerProcess[list[int]]()
    held.get(lambda: [os.getpid()])
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        own = held.get(lambda: [os.getpid()]) == [os.getpid()]
        os.write(writer, b"own" if own else b"inherited")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 20) == b"own"
    assert held.get(list) == [os.getpid()]
    os.close(reader)
    os.close(writer)
