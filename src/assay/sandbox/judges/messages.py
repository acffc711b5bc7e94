"""Define messages between the harness and its judge processes, pickled in frames.

Both sides are the harness's own code, connected by a pair of sockets. Nothing that a program wrote
is unpickled: it arrives from the workers in a closed encoding.
"""

from __future__ import annotations

import copyreg
import dataclasses
import operator
import pickle
import socket
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from assay.sandbox import Item
from assay.sandbox.environments.interpreters import Interpreter
from assay.sandbox.inside.judging.wire import Latest
from assay.types import Cases, Job, Limits, Problem, Program, Tests, Verdict

LENGTH = struct.Struct(">Q")
PIECE = 1 << 20
ROOM = 64 << 20  # bytes of contexts that a judge process holds


class Opening(NamedTuple):
    """Describe the sandbox of a judge process. Its first message."""

    tier: str
    python: Interpreter
    workers: int
    dozing: int
    seed: str
    gate: int  # descriptors of the lock
    room: int
    cores: tuple[int, ...] = ()  # that the process and its workers use; none: all


class JudgeStageStart(NamedTuple):
    """The start of a stage."""

    stage: Any


class Items(NamedTuple):
    """Hold items. Contexts that the process has not yet, or no longer, are sent with them."""

    contexts: list[tuple[int, bytes]]
    items: list[tuple[int, int, Any]]  # tag, number of the context, payload


class JudgeStageEnd(NamedTuple):
    """The end of the items of a stage."""


class StageAnswers(NamedTuple):
    """Answers by tag. None: the item waits for others."""

    answers: list[tuple[int, Any]]


class Finished(NamedTuple):
    """Report that a stage has answered all its items."""


class Failed(NamedTuple):
    """Report an error that ends the whole stage."""

    error: Exception


ToJudge = Opening | JudgeStageStart | Items | JudgeStageEnd
ToHarness = StageAnswers | Finished | Failed


class ContextsSent:
    """Number the contexts of items. The latest are known to the process and are not sent again."""

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
    """Hold the same contexts on the other side."""

    def __init__(self) -> None:
        self._known: Latest[int, object] = Latest(ROOM)

    def unpack(self, message: Items) -> list[Item[Any, Any]]:
        """Return the items of a message."""
        # Contexts may replace each other within a message, so the new ones are held apart.
        new = {}
        for number, content in message.contexts:
            new[number] = pickle.loads(content)
        found = [
            Item(tag, new[number] if number in new else self._known.items[number], payload)
            for tag, number, payload in message.items
        ]
        for number, content in message.contexts:
            self._known.add(number, new[number], len(content))
        return found


class Connection:
    """Send and receive messages. One thread may send while another one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: ToJudge | ToHarness) -> None:
        """Send a message. Raise OSError if the other side is gone."""
        content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._end.sendall(LENGTH.pack(len(content)) + content)

    def receive(self) -> Any:
        """Return the next message. Raise EOFError if the other side is gone."""
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return pickle.loads(self._exactly(length))

    def shut_down(self) -> None:
        self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._end.close()

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            try:
                piece = self._end.recv(min(size, PIECE))
            except ConnectionError as error:
                raise EOFError from error
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _pickle_as_call(cls: type[Any]) -> None:
    """Pickle a dataclass as a call with its fields: 4 times as fast as by its state."""
    fields = operator.attrgetter(*(field.name for field in dataclasses.fields(cls)))
    copyreg.pickle(cls, lambda value: (cls, fields(value)))


for _type in (Cases, Job, Limits, Problem, Program, Tests, Verdict):
    _pickle_as_call(_type)
