"""Hand the items of one stage out to judge processes, and take their answers."""

from __future__ import annotations

import itertools
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from assay.errors import SandboxError
from assay.sandbox import PAUSE, Item, Stage
from assay.sandbox.judges.messages import Failed, Opening, StageAnswers
from assay.sandbox.judges.process import JudgeProcess

AHEAD = 8  # items per worker that a process holds, so that none of its workers waits
STUCK_S = 0.5  # without an answer; the process then holds only what its workers can take
BATCH = 4  # items that are sent together, unless there are fewer
LOOK_EVERY_S = 0.2
IDLE = 1 << 20  # more than any process has room for
ATTEMPTS = 3
HOMES = 2_000  # contexts are held, and those of a judge service may never come again
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
Start = Callable[[Opening, JudgeProcess | None], JudgeProcess]


@dataclass(slots=True)
class _Given(Generic[C, P]):
    """Hold an item that a process works on."""

    item: Item[C, P]
    attempts: int = 0
    waits: bool = False  # for other items, so it does not count


@dataclass(slots=True)
class _Member(Generic[C, P]):
    """Hold a process and what it was given."""

    opening: Opening
    process: JudgeProcess | None
    given: dict[int, _Given[C, P]] = field(default_factory=dict)
    unsent: list[Item[C, P]] = field(default_factory=list)
    load: int = 0  # items that count
    answered: float = 0.0  # when
    ends: int = 0  # of its processes in a row, without an answer
    finished: bool = False

    def room(self, now: float) -> int:
        """Return how many more items the process may hold, and more if it has idle workers."""
        idle = self.opening.workers - self.load
        if idle > 0:
            return IDLE + idle
        ahead = AHEAD if now - self.answered < STUCK_S else 1
        return ahead * self.opening.workers - self.load


class Dispatch(Generic[C, P, R]):
    """Run one stage. A thread reads the items, which may block; the caller takes the answers.

    Items of a process that ends are given to its successor. An item that has lost several processes
    is given up.
    """

    def __init__(
        self,
        stage: Stage[C, P, R],
        items: Iterable[tuple[C, P] | None],
        processes: Iterable[tuple[Opening, JudgeProcess | None]],
        start: Start,
    ) -> None:
        self._stage, self._items, self._start = stage, items, start
        self._members: list[_Member[C, P]] = [_Member(o, p) for o, p in processes]
        self._given_up: list[_Member[C, P]] = []
        self._changed = threading.Condition()
        self._homes: dict[int, tuple[C, _Member[C, P]]] = {}  # by the context's identity
        self._stopped = self._fed = False
        self._failure: BaseException | None = None

    def processes(self) -> list[tuple[Opening, JudgeProcess | None]]:
        """Return the processes of the stage as they are now."""
        return [(m.opening, m.process) for m in (*self._members, *self._given_up)]

    def answers(self) -> Iterator[list[R]]:
        """Yield answers in batches. An error of the items is raised after all others are done."""
        poll = select.poll()
        by_descriptor: dict[int, _Member[C, P]] = {}
        for member in self._members:
            member.process = member.process or self._start(member.opening, None)
            member.process.begin(self._stage)
            member.answered = time.monotonic()
            by_descriptor[member.process.fileno()] = member
            poll.register(member.process, select.POLLIN)
        threading.Thread(target=self._feed, daemon=True).start()
        try:
            while not all(member.finished for member in self._members):
                for descriptor, _ in poll.poll():
                    member = by_descriptor[descriptor]
                    try:
                        results = self._receive(member)
                    except EOFError:
                        poll.unregister(descriptor)
                        del by_descriptor[descriptor]
                        results = self._replace(member)
                        if member.process is not None:
                            by_descriptor[member.process.fileno()] = member
                            poll.register(member.process, select.POLLIN)
                    if results:
                        yield results
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
        if self._failure is not None:
            raise self._failure

    def _receive(self, member: _Member[C, P]) -> list[R]:
        """Return the answers of the next message."""
        assert member.process is not None
        message = member.process.receive()
        if isinstance(message, Failed):
            raise message.error
        if not isinstance(message, StageAnswers):
            member.finished = True
            return []
        results: list[R] = []
        with self._changed:
            for tag, result in message.answers:
                given = member.given[tag]
                member.load -= not given.waits
                if result is None:
                    given.waits = True
                else:
                    del member.given[tag]
                    results.append(result)
            member.answered, member.ends = time.monotonic(), 0
            self._changed.notify_all()
        return results

    def _replace(self, member: _Member[C, P]) -> list[R]:
        """Start another process in the place of one that ended. Return answers for lost items."""
        earlier = member.process
        assert earlier is not None
        if earlier.closed:
            raise SandboxError("sandbox: was closed while programs were being judged.")
        why = f"the judge process ended ({earlier.explain_end()})"
        with self._changed:
            given, member.given, member.unsent, member.load = member.given, {}, [], 0
            member.ends += 1
            lost = []
            for tag, one in given.items():
                one.attempts, one.waits = one.attempts + 1, False
                if one.attempts < ATTEMPTS:
                    member.given[tag] = one
                else:
                    lost.append(one)
            member.process = None
            if member.ends < ATTEMPTS:
                member.process = self._start(member.opening, earlier)
                member.process.begin(self._stage)
                member.load = len(member.given)
                if member.given:
                    member.process.put([one.item for one in member.given.values()])
                if self._fed:
                    member.process.end()
            else:
                self._give_up(member, why)
                lost += member.given.values()
        return [self._stage.give_up(*one.item[1:], why) for one in lost]

    def _give_up(self, member: _Member[C, P], why: str) -> None:
        """Go on with the other processes."""
        self._members.remove(member)
        self._given_up.append(member)
        self._homes = {}
        if not self._members:
            raise SandboxError(
                f"sandbox: {why}, {ATTEMPTS} times in a row. Check the limits on memory and "
                "processes."
            )

    def _feed(self) -> None:
        """Give all items out. Runs in a separate thread."""
        tags = itertools.count()
        try:
            for item in self._items:
                with self._changed:
                    if self._stopped:
                        return
                    if item is PAUSE:
                        self._send_all()
                    else:
                        self._give(Item(next(tags), *item))
        except BaseException as error:
            self._failure = error
        finally:
            with self._changed:
                self._send_all()
                self._fed = True
                for member in self._members:
                    if member.process and not self._stopped:
                        member.process.end()

    def _give(self, item: Item[C, P]) -> None:
        """Give an item to a process, as soon as one has room for it."""
        member = self._choose(item.context)
        while member is None:
            self._send_all()
            self._changed.wait(LOOK_EVERY_S)
            if self._stopped:
                return
            member = self._choose(item.context)
        if len(self._homes) >= HOMES:
            self._homes.clear()
        self._homes[id(item.context)] = item.context, member
        member.given[item.tag] = _Given(item)
        member.load += 1
        member.unsent.append(item)
        if len(member.unsent) >= BATCH:
            self._send(member)

    def _choose(self, context: C) -> _Member[C, P] | None:
        """Return a process with an idle worker, or one with room. Prefer one with the context."""
        _, home = self._homes.get(id(context), (None, None))
        now = time.monotonic()
        at_home = home.room(now) if home else 0
        if at_home > IDLE:
            return home
        best = max(self._members, key=lambda member: member.room(now))
        most = best.room(now)
        if most <= IDLE and at_home > 0:
            return home
        return best if most > 0 else None

    def _send_all(self) -> None:
        for member in self._members:
            if member.unsent:
                self._send(member)

    def _send(self, member: _Member[C, P]) -> None:
        if member.process:
            member.process.put(member.unsent)
        member.unsent = []
