"""Hand the items of one stage out to hosts in batches, and take their answers.

This is what ``sandbox/judges/dispatch.py`` does for the processes of one machine. Here hosts join
and leave at any time, an item costs the driver microseconds, and batches grow with the rate at
which a host works.
"""

from __future__ import annotations

import itertools
import math
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from assay.cluster.messages import HostStageEnd, HostStageStart, Taken, ToHost
from assay.errors import AssayError
from assay.sandbox import PAUSE, Item
from assay.sandbox.stages import ContextsSent

# An item may lose two hosts beside any others, one beside other such items, and one alone.
SHARED = 2
ATTEMPTS = SHARED + 2
BATCH = 128  # items that are sent together at most: a call costs the driver 0.2 ms
MOST_AHEAD = 2048  # items that a host holds and has not started
LOOK_EVERY_S = 3.0  # for hosts that can be started
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
C_in = TypeVar("C_in", contravariant=True)
P_in = TypeVar("P_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)


class HostWork(Protocol[C_in, P_in, R_out]):
    """A stage that runs on hosts, each with a sandbox or a model."""

    def give_up(self, context: C_in, payload: P_in, why: str) -> R_out:
        """Return the answer for an item that has lost several hosts, or raise an error."""
        ...


class MemberLostError(Exception):
    """A host is gone, with everything that it worked on."""


class Member:
    """Be a host, as the driver sees it. It may serve one stage after the other."""

    def __init__(self, name: str, weight: int) -> None:
        self.name = name
        self.weight = weight  # how many items it works on at a time, about
        self.contexts = ContextsSent()
        self.sent = self.consumed = 0  # items, of all stages so far

    def put(self, messages: list[ToHost]) -> None:
        """Send messages, and do not wait."""
        raise NotImplementedError

    def take(self, done: Callable[[bytes | BaseException], None]) -> None:
        """Ask for answers. ``done`` gets them later, from any thread: a pickled ``Taken``.

        A second call before that replaces the function.
        """
        raise NotImplementedError


class Staff(Protocol):
    """Start hosts, and replace those that are lost."""

    def recruit(self, joined: Callable[[Member], None]) -> bool:
        """Start the hosts that are missing. ``joined`` gets those that are ready, now or later.

        Return False if there are none and none is being started.
        """
        ...

    def dismiss(self, member: Member, why: BaseException) -> None:
        """Give up a host that is lost or has failed. ``recruit`` may start another in its place."""
        ...

    def explain(self) -> AssayError:
        """Return why there are no hosts."""
        ...


class HostPace(NamedTuple):
    """The amount of work that a host is given in advance."""

    ahead: int = 4  # items per worker at first; more if it has to wait for items


@dataclass(slots=True)
class _MemberState(Generic[C, P]):
    """A member and what it was given."""

    member: Member
    target: int  # items that it may hold and not have started
    given: dict[int, Item[C, P]] = field(default_factory=dict)
    unsent: list[Item[C, P]] = field(default_factory=list)
    suspected: bool = False  # what it was given may be what ends hosts
    limited: bool = False  # it could have been given more
    started: bool = False
    lost: bool = False

    @property
    def room(self) -> int:
        return self.target - (self.member.sent - self.member.consumed)

    @property
    def reserved(self) -> bool:
        """Return whether it works on suspects and must get nothing else."""
        return self.suspected and bool(self.given)

    @property
    def load(self) -> float:
        return len(self.given) / self.member.weight


class HostStageRun(Generic[C, P, R]):
    """The run of one stage. A thread reads the items, which may block; the caller takes answers.

    Items of a host that is lost are given to others. What has lost several hosts is a suspect. Few
    suspects get an idle host together, then each gets one alone. Only if that is lost too, the item
    is given up: nothing was beside it. An error that a host reports ends the stage, unless it is of
    a kind in ``retried``.
    """

    def __init__(
        self,
        stage: HostWork[C, P, R],
        items: Iterable[tuple[C, P] | None],
        staff: Staff,
        pace: HostPace,
        retried: tuple[type[AssayError], ...] = (),
        watch: Callable[[Member, Taken], None] = lambda *_: None,
    ) -> None:
        self._stage, self._items, self._staff, self._pace = stage, items, staff, pace
        self._retried, self._watch = retried, watch
        self._states: list[_MemberState[C, P]] = []
        self._retry: deque[Item[C, P]] = deque()
        self._suspects: deque[Item[C, P]] = deque()  # first those that need a host alone
        self._losses: dict[int, int] = {}  # hosts that an item has lost, by tag
        self._changed = threading.Condition()
        self._events: queue.SimpleQueue[tuple[_MemberState[C, P], bytes | BaseException] | None]
        self._events = queue.SimpleQueue()
        self._stopped = self._fed = False
        self._failure: BaseException | None = None
        self._open = 0  # items without an answer
        # By identity. Lost members stay, so that no other one gets the identity of one of them.
        self._known: dict[int, Member] = {}
        self._look_at = 0.0

    def answers(self) -> Generator[list[R], None, None]:
        """Yield answers in batches. An error of the items is raised after all others are done."""
        self._recruit()
        threading.Thread(target=self._feed, daemon=True).start()
        try:
            while not self._is_done():
                if time.monotonic() > self._look_at:
                    self._recruit()
                try:
                    event = self._events.get(timeout=LOOK_EVERY_S)
                except queue.Empty:
                    continue
                if event is None:  # the items have ended
                    continue
                if results := self._handle(*event):
                    yield results
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
        if self._failure is not None:
            raise self._failure

    def _is_done(self) -> bool:
        with self._changed:
            return self._fed and not self._open

    def _handle(self, state: _MemberState[C, P], event: bytes | BaseException) -> list[R]:
        if state.lost:
            return []
        if isinstance(event, BaseException):
            return self._replace(state, event)
        taken: Taken = pickle.loads(event)
        results = self._accept(state, taken)
        if taken.failure is not None:
            if not isinstance(taken.failure, self._retried):
                raise taken.failure
            return results + self._replace(state, taken.failure)
        self._watch(state.member, taken)
        with self._changed:
            self._give_again()
        self._ask(state)
        return results

    def _accept(self, state: _MemberState[C, P], taken: Taken) -> list[R]:
        """Return the new answers of a host, and let it hold more if it had to wait."""
        results = []
        with self._changed:
            for tag, result in taken.answers:
                if state.given.pop(tag, None) is not None:
                    results.append(result)
            self._open -= len(results)
            state.member.consumed = taken.consumed
            if taken.starved and state.limited:
                state.target = min(2 * state.target, MOST_AHEAD)
            state.limited = False
            self._changed.notify_all()
        return results

    def _replace(self, state: _MemberState[C, P], why: BaseException) -> list[R]:
        """Give the items of a lost host to others. Return answers for those that are given up."""
        with self._changed:
            state.lost = True
            self._states.remove(state)
            given_up: list[Item[C, P]] = []
            for tag, item in state.given.items():
                losses = self._losses[tag] = self._losses.get(tag, 0) + 1
                if losses < SHARED:
                    self._retry.append(item)
                elif losses == SHARED:
                    self._suspects.append(item)
                elif losses < ATTEMPTS:
                    self._suspects.appendleft(item)
                else:
                    given_up.append(item)
            self._open -= len(given_up)
            self._changed.notify_all()
        self._staff.dismiss(state.member, why)
        self._look_at = 0.0  # for another host, if there is work for it
        reason = " ".join(str(why).split()) or type(why).__name__
        return [self._stage.give_up(*item[1:], reason) for item in given_up]

    def _recruit(self) -> None:
        self._look_at = time.monotonic() + LOOK_EVERY_S
        if not self._staff.recruit(self._join) and not self._states:
            raise self._staff.explain()
        with self._changed:
            self._give_again()

    def _join(self, member: Member) -> None:
        """Add a host. Called from any thread."""
        state: _MemberState[C, P] = _MemberState(member, max(1, self._pace.ahead * member.weight))
        with self._changed:
            if self._stopped or id(member) in self._known:
                return
            self._known[id(member)] = member
            self._states.append(state)
            self._give_again()
            self._changed.notify_all()
        self._ask(state)

    def _ask(self, state: _MemberState[C, P]) -> None:
        state.member.take(lambda taken: self._events.put((state, taken)))

    def _give_again(self) -> None:
        """Give items of lost hosts to those with the least load, and suspects to idle ones."""
        if not (self._retry or self._suspects):
            return
        free = [state for state in self._states if not state.reserved]
        while self._retry and free:
            self._assign(min(free, key=lambda one: one.load), [self._retry.popleft()])
        for state in free:
            if self._suspects and not state.given:
                self._assign(state, self._next_suspects(), suspected=True)
        self._send_all()

    def _next_suspects(self) -> list[Item[C, P]]:
        """Take one that needs a host alone, or a group: as many as there will be groups."""
        is_last = self._losses[self._suspects[0].tag] > SHARED
        count = 1 if is_last else math.isqrt(len(self._suspects))
        return [self._suspects.popleft() for _ in range(count)]

    def _feed(self) -> None:
        """Give all items out. Runs in a separate thread."""
        # Read without the lock, which the thread that takes answers needs all the time.
        tags, batch, quota = itertools.count(), list[Item[C, P]](), 1
        try:
            for item in self._items:
                if item is not PAUSE:
                    batch.append(Item(next(tags), *item))
                    if len(batch) < quota:
                        continue
                quota = self._give(batch)
                batch = []
                if not quota:  # stopped
                    return
        except BaseException as error:
            self._failure = error
        finally:
            if batch:
                self._give(batch)
            with self._changed:
                self._fed = True
                if not self._stopped:
                    self._send_all()
            self._events.put(None)

    def _give(self, batch: list[Item[C, P]]) -> int:
        """Give items to hosts. Return how many the next batch should have; 0 if stopped."""
        with self._changed:
            self._open += len(batch)
            while batch:
                state = self._choose()
                if state is None:
                    return 0
                share, batch = batch[: state.room], batch[state.room :]
                self._assign(state, share)
                self._send(state)
            most = max((state.room or state.target for state in self._states), default=0)
            # Not all of it at once, so that few items are spread over all hosts.
            return 0 if self._stopped else max(1, min(BATCH, most // 2))

    def _assign(
        self, state: _MemberState[C, P], items: list[Item[C, P]], suspected: bool = False
    ) -> None:
        state.suspected = suspected
        state.given.update((item.tag, item) for item in items)
        state.unsent += items
        state.member.sent += len(items)

    def _choose(self) -> _MemberState[C, P] | None:
        """Wait for a host with room. Return the one with the least load; None if stopped."""
        while not self._stopped:
            free = [state for state in self._states if state.room > 0 and not state.reserved]
            if free:
                return min(free, key=lambda one: one.load)
            for state in self._states:
                state.limited = True
            self._changed.wait()
        return None

    def _send_all(self) -> None:
        for state in self._states:
            self._send(state)

    def _send(self, state: _MemberState[C, P]) -> None:
        """Send what a host was given. After the last items and after suspects, also their end."""
        messages: list[ToHost] = []
        if state.unsent:
            if not state.started:
                messages.append(HostStageStart(self._stage))
                state.started = True
            messages.append(state.member.contexts.pack(state.unsent))
            state.unsent = []
        if (self._fed or state.suspected) and state.started:
            messages.append(HostStageEnd())
            state.started = False  # items of another host that follow are a stage of their own
        if messages:
            state.member.put(messages)
