"""The messages between the harness and its judge processes, which are pickled.

Both sides are the harness's own code. Nothing that a program wrote is unpickled: it arrives from
the workers in a closed encoding.
"""

from __future__ import annotations

import copyreg
import dataclasses
import operator
import pickle
import queue
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from assay.sandbox import PAUSE, Item
from assay.sandbox.environments.interpreters import Interpreter
from assay.sandbox.inside.judging.wire import Latest
from assay.types import Cases, Job, Limits, Problem, Program, Tests, Verdict

ROOM = 64 << 20  # bytes of contexts that a judge process holds


class Opening(NamedTuple):
    """The sandbox of a judge process. Its first message."""

    tier: str
    python: Interpreter
    workers: int
    dozing: int
    seed: str
    gate: int  # descriptors of the lock
    room: int
    cores: tuple[int, ...] = ()  # that the process and its workers use; none: all


class StageStart(NamedTuple):
    """The start of a stage."""

    stage: Any


class Items(NamedTuple):
    """Items, with those of their contexts that the process has not yet, or no longer."""

    contexts: list[tuple[int, bytes]]
    items: list[tuple[int, int, Any]]  # tag, number of the context, payload


class StageEnd(NamedTuple):
    """The end of the items of a stage."""


class StageAnswers(NamedTuple):
    """Answers by tag. None: the item waits for others."""

    answers: list[tuple[int, Any]]


class Finished(NamedTuple):
    """The end of a stage that has answered all its items."""


class Failed(NamedTuple):
    """An error that ends the whole stage."""

    error: Exception


ToJudge = Opening | StageStart | Items | StageEnd
ToHarness = StageAnswers | Finished | Failed


class ContextsSent:
    """The numbers of contexts. The latest are known to the process and are not sent again."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by identity
        self._known: Latest[int, object] = Latest(ROOM)
        self._count = 0

    def pack(self, items: Iterable[Item[Any, Any]]) -> Items:
        """Return a message with the items."""
        new: list[tuple[int, bytes]] = []
        packed = []
        for tag, context, payload in items:
            number = self._numbers.get(id(context), -1)
            # An identity counts only while the object is held.
            if self._known.items.get(number) is not context:
                number, content = self._count, pickle.dumps(context, pickle.HIGHEST_PROTOCOL)
                self._count += 1
                self._numbers[id(context)] = number
                self._known.add(number, context, len(content))
                new.append((number, content))
                if len(self._numbers) > 2 * len(self._known.items):
                    self._numbers = {id(one): n for n, one in self._known.items.items()}
            packed.append((tag, number, payload))
        return Items(new, packed)


class ContextsReceived:
    """The same contexts on the other side."""

    def __init__(self) -> None:
        self._known: Latest[int, object] = Latest(ROOM)

    def unpack(self, message: Items) -> list[Item[Any, Any]]:
        """Return the items of a message."""
        # Contexts may replace each other within a message, so the new ones are held apart.
        new = {number: pickle.loads(content) for number, content in message.contexts}
        items = [
            Item(tag, new[number] if number in new else self._known.items[number], payload)
            for tag, number, payload in message.items
        ]
        for number, content in message.contexts:
            self._known.add(number, new[number], len(content))
        return items


class StageInbox:
    """The messages of a harness or driver, where its stages run one after the other."""

    def __init__(self) -> None:
        self._contexts = ContextsReceived()
        self._waiting: queue.SimpleQueue[Item[Any, Any] | StageStart | StageEnd]
        self._waiting = queue.SimpleQueue()
        self.received = self.consumed = 0  # items

    def __len__(self) -> int:
        return self._waiting.qsize()

    def put(self, message: StageStart | Items | StageEnd) -> None:
        if not isinstance(message, Items):
            self._waiting.put(message)
            return
        self.received += len(message.items)
        for item in self._contexts.unpack(message):
            self._waiting.put(item)

    def stages(self) -> Iterator[Any]:
        """Yield one stage after the other, without end."""
        while True:
            message = self._waiting.get()
            if isinstance(message, StageStart):
                yield message.stage

    def items(self, on_empty: Callable[[], None] = lambda: None) -> Iterator[Item[Any, Any] | None]:
        """Yield what arrives until the end of a stage, and a pause before every wait."""
        while True:
            if not self:
                yield PAUSE
                if not self:
                    on_empty()
            message = self._waiting.get()
            if isinstance(message, StageEnd):
                return
            assert isinstance(message, Item)
            self.consumed += 1
            yield message


def pickle_as_call(cls: type[Any]) -> None:
    """Pickle a dataclass as a call with its fields: 4 times as fast as by its state."""
    fields = operator.attrgetter(*(field.name for field in dataclasses.fields(cls)))
    copyreg.pickle(cls, lambda value: (cls, fields(value)))


for _type in (Cases, Job, Limits, Problem, Program, Tests, Verdict):
    pickle_as_call(_type)
