"""One judge process, and how the items of a stage are handed out to several of them."""

from __future__ import annotations

import contextlib
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from assay.errors import SandboxError
from assay.sandbox import Item, Stage
from assay.sandbox.judges.judge_messages import (
    ContextsSent,
    Failed,
    Opening,
    StageAnswers,
    StageEnd,
    StageStart,
    ToHarness,
    ToJudge,
)
from assay.work.dispatch import Dispatch, Share
from assay.work.process import ChildProcess

SCRIPT = (
    "import sys; sys.path.append(sys.argv[1]); from assay.sandbox.judges.main import main;"
    "main(int(sys.argv[2]))"
)
INTERPRETER = (sys.executable, "-P", "-B", "-c", SCRIPT, str(Path(__file__).parents[3]))
CLOSE_S = 10.0  # for all its workers to end
AHEAD = 8  # items per worker that a process holds, so that none of its workers waits
STUCK_S = 0.5  # without an answer; the process then holds only what its workers can take
IDLE = 1 << 20  # more than any process has room for
ATTEMPTS = 3
HOMES = 2_000  # contexts are held, and those of a judge service may never come again
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")


class JudgeProcess(ChildProcess):
    """A process with its own sandbox. One thread sends, one receives, any may close."""

    def __init__(self, opening: Opening) -> None:
        self.closed = False
        self._contexts = ContextsSent()
        try:
            super().__init__(INTERPRETER, descriptors=(opening.gate, opening.room))
        except OSError as error:
            raise SandboxError(
                f"sandbox: no judge process can start ({error}). "
                "Check the limits on memory and processes."
            ) from error
        self.post(opening)

    def post(self, message: ToJudge) -> None:
        """Send a message. Whoever receives learns that a process is gone, and what that means."""
        with contextlib.suppress(OSError):
            self.send_object(message)

    def put(self, items: Iterable[Item[Any, Any]]) -> None:
        self.post(self._contexts.pack(items))

    def shut_down(self) -> None:
        """Ask the process to end all its workers and itself, and do not wait."""
        self.closed = True
        super().shut_down()

    def close(self, patience_s: float = CLOSE_S) -> None:
        """End the process and all its workers. If it is killed, they notice and end themselves."""
        super().close(patience_s)


Start = Callable[[Opening, JudgeProcess | None], JudgeProcess]


@dataclass(slots=True)
class _JudgeSlot(Share[C, P]):
    """The place of a process, which another one takes if it ends."""

    opening: Opening
    process: JudgeProcess | None
    waiting: set[int] = field(default_factory=set)  # for other items, so they do not count
    answered: float = 0.0  # when
    ends: int = 0  # of its processes in a row, without an answer
    ended: bool = False  # the process knows that no more items follow
    finished: bool = False

    def room(self, now: float) -> int:
        """Return how many more items the process may hold, and more if it has idle workers."""
        load, workers = len(self.held) - len(self.waiting), self.opening.workers
        if load < workers:
            return IDLE + workers - load
        ahead = AHEAD if now - self.answered < STUCK_S else 1
        return ahead * workers - load


class JudgeDispatch(Dispatch[C, P, R, _JudgeSlot[C, P]]):
    """The run of one stage in judge processes.

    Items of a process that ends are given to its successor. An item that has lost several processes
    is given up.
    """

    batch = 4

    def __init__(
        self,
        stage: Stage[C, P, R],
        items: Iterable[tuple[C, P] | None],
        processes: Iterable[tuple[Opening, JudgeProcess | None]],
        start: Start,
    ) -> None:
        super().__init__(stage, items)
        self._start = start
        self._shares = [_JudgeSlot(opening, process) for opening, process in processes]
        self._abandoned: list[_JudgeSlot[C, P]] = []
        self._homes: dict[int, tuple[C, _JudgeSlot[C, P]]] = {}  # by the context's identity
        self._poll = select.poll()
        self._by_descriptor: dict[int, _JudgeSlot[C, P]] = {}

    def processes(self) -> list[tuple[Opening, JudgeProcess | None]]:
        """Return the processes of the stage as they are now."""
        return [(slot.opening, slot.process) for slot in (*self._shares, *self._abandoned)]

    def _begin(self) -> None:
        for slot in self._shares:
            slot.process = slot.process or self._start(slot.opening, None)
            self._begin_stage(slot, slot.process)
            slot.answered = time.monotonic()

    def _begin_stage(self, slot: _JudgeSlot[C, P], process: JudgeProcess) -> None:
        process.post(StageStart(self._stage))
        self._by_descriptor[process.fileno()] = slot
        self._poll.register(process, select.POLLIN)

    def _is_done(self) -> bool:
        return all(slot.finished for slot in self._shares)

    def _receive(self) -> Iterator[list[R]]:
        for descriptor, _ in self._poll.poll():
            slot = self._by_descriptor[descriptor]
            assert slot.process is not None
            try:
                results = self._accept(slot, slot.process.receive_object())
            except EOFError:
                self._poll.unregister(descriptor)
                del self._by_descriptor[descriptor]
                results = self._replace(slot, slot.process)
            yield results

    def _wake(self) -> None:
        if self._broken is not None:  # otherwise the processes say that they have finished
            for slot in self._shares:
                if slot.process:
                    slot.process.shut_down()

    def _accept(self, slot: _JudgeSlot[C, P], message: ToHarness) -> list[R]:
        """Return the answers of a message."""
        if isinstance(message, Failed):
            raise message.error
        if not isinstance(message, StageAnswers):
            slot.finished = True
            return []
        results: list[R] = []
        with self._changed:
            for tag, result in message.answers:
                if result is None:
                    slot.waiting.add(tag)
                else:
                    slot.waiting.discard(tag)
                    del slot.held[tag]
                    results.append(result)
            slot.answered, slot.ends = time.monotonic(), 0
            self._changed.notify_all()
        return results

    def _replace(self, slot: _JudgeSlot[C, P], earlier: JudgeProcess) -> list[R]:
        """Start another process in the place of one that ended. Return answers for lost items.

        If several ended in a row without an answer, something is wrong with the place itself. Then
        the other processes go on without it.
        """
        if self._broken is not None:
            raise self._broken
        if earlier.closed:
            raise SandboxError("sandbox: was closed while programs were being judged.")
        why = f"the judge process ended ({earlier.explain_end(CLOSE_S)})"
        with self._changed:
            lost = []
            for item, losses in self._take_back(slot):
                if losses < ATTEMPTS:
                    self._assign(slot, [item])
                else:
                    lost.append(item)
            slot.process, slot.waiting = None, set()
            slot.ends += 1
            if slot.ends < ATTEMPTS:
                slot.process, slot.ended = self._start(slot.opening, earlier), False
                self._begin_stage(slot, slot.process)
                self._send(slot)
            else:
                lost += slot.held.values()
                self._abandon(slot, why)
        return self._give_up(lost, why)

    def _abandon(self, slot: _JudgeSlot[C, P], why: str) -> None:
        self._shares.remove(slot)
        self._abandoned.append(slot)
        self._homes = {}
        if not self._shares:
            raise SandboxError(
                f"sandbox: {why}, {ATTEMPTS} times in a row. Check the limits on memory and "
                "processes."
            )

    def _choose(self, item: Item[C, P]) -> tuple[_JudgeSlot[C, P], int] | None:
        """Return a process with an idle worker, or one with room. Prefer one with the context."""
        _, home = self._homes.get(id(item.context), (None, None))
        now = time.monotonic()
        at_home = home.room(now) if home else 0
        if home and at_home > IDLE:
            return home, at_home
        best = max(self._shares, key=lambda slot: slot.room(now))
        most = best.room(now)
        if home and most <= IDLE and at_home > 0:
            return home, at_home
        return (best, most) if most > 0 else None

    def _assign(self, share: _JudgeSlot[C, P], items: list[Item[C, P]]) -> None:
        super()._assign(share, items)
        if len(self._homes) >= HOMES:
            self._homes.clear()
        self._homes.update((id(item.context), (item.context, share)) for item in items)

    def _send(self, share: _JudgeSlot[C, P]) -> None:
        if share.process:
            if share.unsent:
                share.process.put(share.unsent)
            if self._fed and not share.ended:
                share.ended = True
                share.process.post(StageEnd())
        share.unsent = []
