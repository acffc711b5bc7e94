"""Dispatch hands every item out once, and loses none with a host."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from assay.cluster.dispatch import ATTEMPTS, HostDispatch
from assay.cluster.host_messages import (
    LARGE,
    decode,
    encode,
    make_portable,
)
from assay.datasets.cache import FetchError
from assay.errors import DataError, ModelError, RunError, SandboxError
from assay.sandbox import PAUSE
from assay.sandbox.stages import Items, StageEnd, StageStart
from tests.cluster.in_process import Doubling, LocalHost, LocalHosts, NumberHost, numbers

SOON_S = 20.0


def run(items: Any, staff: LocalHosts, **settings: Any) -> list[tuple[int, str]]:
    dispatch: HostDispatch[str, int, tuple[int, str]] = HostDispatch(
        Doubling(), items, staff, 4, **settings
    )
    return [answer for batch in dispatch.answers() for answer in batch]


def hosts(count: int, **settings: Any) -> list[LocalHost]:
    return [LocalHost(NumberHost(f"host {n}", **settings)) for n in range(count)]


def test_every_item_is_answered_once() -> None:
    found = run(numbers(5_000), LocalHosts(hosts(3)))
    assert sorted(value for value, _ in found) == [2 * n for n in range(5_000)]
    assert len({name for _, name in found}) == 3


def test_no_items_need_no_host_to_answer() -> None:
    assert run(iter(()), LocalHosts(hosts(1))) == []


def test_batches_grow_where_a_host_is_fast() -> None:
    (member,) = hosts(1)
    run(numbers(20_000), LocalHosts([member]))
    assert max(member.batches) == 128
    assert 20_000 / len(member.batches) > 25  # items per call


def test_few_items_are_spread_over_all_hosts() -> None:
    barrier = threading.Barrier(4, timeout=SOON_S)
    members = [LocalHost(NumberHost(f"host {n}", before=meet_once(barrier))) for n in range(4)]
    found = run(numbers(16), LocalHosts(members))
    assert Counter(name for _, name in found).keys() == {f"host {n}" for n in range(4)}


def meet_once(barrier: threading.Barrier) -> Any:
    """Wait at the first item until every host has one."""
    waited = threading.Event()

    def before(_: int) -> None:
        if not waited.is_set():
            waited.set()
            barrier.wait()

    return before


def test_an_item_is_given_while_the_next_one_does_not_come() -> None:
    came = threading.Event()

    def slow() -> Iterator[Any]:
        yield "context", 1
        yield PAUSE
        assert came.wait(SOON_S)
        yield "context", 2

    dispatch: HostDispatch[str, int, tuple[int, str]] = HostDispatch(
        Doubling(), slow(), LocalHosts(hosts(2)), 4
    )
    answers = dispatch.answers()
    assert next(answers)[0][0] == 2
    came.set()
    assert [value for batch in answers for value, _ in batch] == [4]


def test_a_context_is_sent_once_to_a_host() -> None:
    (member,) = hosts(1)
    run(numbers(300, "x" * 1000), LocalHosts([member]))
    run(numbers(300, "x" * 1000), LocalHosts([member]))
    assert len(member.host.contexts) == 600
    assert len(set(map(id, member.host.contexts))) <= 2


def test_items_of_a_lost_host_are_done_by_others() -> None:
    first, second = LocalHost(NumberHost("first")), LocalHost(NumberHost("second"))
    first.host._before = lambda n: first.lose() if n >= 40 else None
    staff = LocalHosts([first, second])
    found = run(numbers(2_000), staff)
    assert sorted(value for value, _ in found) == [2 * n for n in range(2_000)]
    assert staff.dropped == [("first", "switched off")]


def test_a_host_that_is_lost_at_the_end_is_replaced() -> None:
    """The others have been told that no items follow, and take those of the lost one anyway."""
    fed, here = threading.Event(), LocalHost(NumberHost("first"))

    def items() -> Iterator[Any]:
        yield from numbers(6)
        fed.set()

    def lose(_: int) -> None:
        assert fed.wait(SOON_S)
        time.sleep(0.1)
        here.lose()

    here.host._before = lose
    staff = LocalHosts([here], [LocalHost(NumberHost("spare"))])
    found = run(items(), staff)
    assert sorted(found) == [(2 * n, "spare") for n in range(6)]


def test_a_host_may_join_late() -> None:
    staff = LocalHosts(hosts(1))
    staff.hosts[0].host._before = lambda _: time.sleep(0.01)
    late = LocalHost(NumberHost("late"))
    start_missing = staff.start_missing
    threading.Timer(0.2, lambda: start_late(staff, late)).start()

    def note(on_ready: Any) -> bool:
        staff.join = on_ready  # type: ignore[attr-defined]
        return start_missing(on_ready)

    staff.start_missing = note  # type: ignore[method-assign]
    found = run(numbers(400), staff)
    assert sorted(value for value, _ in found) == [2 * n for n in range(400)]
    assert Counter(name for _, name in found)["late"] > 100


def start_late(staff: Any, late: LocalHost) -> None:
    staff.hosts.append(late)
    staff.join(late)


def lose_at(number: int, member: LocalHost) -> Any:
    return lambda n: member.lose() if n == number else None


def test_an_item_that_ends_every_host_is_given_up() -> None:
    members = hosts(ATTEMPTS + 2)
    for member in members:
        member.host._before = lose_at(7, member)
    staff = LocalHosts(members[:2], members[2:])
    found = run(numbers(50), staff)
    assert (7, "given up: switched off") in found
    assert len(found) == 50
    assert len(staff.dropped) == ATTEMPTS


def test_items_beside_one_that_ends_every_host_are_answered() -> None:
    """Items that are sent three times with such an item must not be given up with it."""
    members = hosts(ATTEMPTS + 1)
    for member in members:
        member.host._before = lose_at(7, member)
    found = run(numbers(50), LocalHosts(members[:1], members[1:]))
    assert sorted(value for value, _ in found if value != 7) == [2 * n for n in range(50) if n != 7]
    assert (7, "given up: switched off") in found


def test_items_of_three_lost_hosts_are_answered() -> None:
    """Items that did not end a host must not be given up because their hosts were lost."""
    members = hosts(4)
    for member in members[1:]:
        member.host._before = lambda _, member=member: member.lose()  # type: ignore[misc]
    found = run(numbers(20), LocalHosts(members[3:], members[:3]))
    assert sorted(value for value, _ in found) == [2 * n for n in range(20)]


def test_without_hosts_the_reason_is_raised() -> None:
    (member,) = hosts(1)
    member.host._before = lambda _: member.lose()
    with pytest.raises(RunError, match="no hosts"):
        run(numbers(5), LocalHosts([member]))


def fail_with(error: Exception) -> Any:
    def before(_: int) -> None:
        raise error

    return before


def test_an_error_of_a_host_ends_the_stage() -> None:
    members = [LocalHost(NumberHost("bad", before=fail_with(SandboxError("no workers"))))]
    with pytest.raises(SandboxError, match="node .*: no workers"):
        run(numbers(5), LocalHosts([*members, *hosts(1)]))


def test_an_engine_that_fails_is_left_out() -> None:
    bad = LocalHost(NumberHost("bad", before=fail_with(ModelError("out of memory"))))
    staff = LocalHosts([bad, *hosts(1)])
    found = run(numbers(50), staff, retried=(ModelError,))
    assert sorted(value for value, _ in found) == [2 * n for n in range(50)]
    assert [name for name, _ in staff.dropped] == ["bad"]


def test_if_every_engine_fails_its_error_is_raised() -> None:
    bad = LocalHost(NumberHost("bad", before=fail_with(ModelError("cannot load it"))))
    with pytest.raises(ModelError, match="cannot load it"):
        run(numbers(2), LocalHosts([bad]), retried=(ModelError,))


def test_an_error_of_the_items_is_raised_after_the_answers() -> None:
    def items() -> Iterator[Any]:
        yield from numbers(10)
        raise ModelError("the model failed")

    dispatch: HostDispatch[str, int, tuple[int, str]] = HostDispatch(
        Doubling(), items(), LocalHosts(hosts(2)), 4
    )
    found: list[tuple[int, str]] = []

    def collect() -> None:
        for batch in dispatch.answers():
            found.extend(batch)

    with pytest.raises(ModelError, match="the model failed"):
        collect()
    assert len(found) == 10


def test_large_contexts_travel_apart_from_the_message() -> None:
    small, large = b"s", b"l" * LARGE
    items = Items([(0, small), (1, large)], [(5, 0, "payload")])
    content, apart = encode([StageStart("stage"), items, StageEnd()])
    assert apart == [large]
    assert len(content) < LARGE
    assert decode(content, tuple(apart)) == [StageStart("stage"), items, StageEnd()]


def test_messages_that_overtake_each_other_are_put_in_order() -> None:
    host = NumberHost("host")
    batches = [
        encode([StageStart(Doubling())]),
        encode([Items([(0, b"\x80\x04\x8c\x01a\x94.")], [(0, 0, 1)])]),
        encode([Items([], [(1, 0, 2)]), StageEnd()]),
    ]
    for number in (2, 1, 0):
        content, large = batches[number]
        host.put(number, content, *large)
    deadline = time.monotonic() + SOON_S
    while len(host.contexts) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert host.contexts == ["a", "a"]


def test_errors_keep_their_kind_between_processes() -> None:
    found = make_portable(FetchError("it failed", "Try again"), "n1")
    assert type(found) is DataError
    assert str(found) == "node n1: it failed. Try again."
    assert type(make_portable(ZeroDivisionError("zero"))) is RunError
