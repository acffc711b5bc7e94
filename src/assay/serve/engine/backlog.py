"""Hold programs that wait for a worker: bounded, fair to all requests, with cancellation."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from assay.judging import JudgeTask
from assay.sandbox import PAUSE
from assay.serve.engine.work import JudgeAnswer, JudgeWork

Task = tuple[JudgeTask, JudgeWork]


class FullError(Exception):
    """Report that a request does not fit. The client may try again later."""

    def __init__(self, why: str, retry_after_s: int) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


@dataclass(slots=True, eq=False)
class Ticket:
    """Hold one request: what of it waits, and what is being judged."""

    client: str
    size: int  # bytes
    answer: Callable[[Sequence[JudgeAnswer]], None]  # called from any thread
    waiting: deque[Task]
    taken: dict[int, Task] = field(default_factory=dict)  # by number
    cancelled: bool = False

    @property
    def open(self) -> int:
        """The programs that are not answered yet."""
        return len(self.waiting) + len(self.taken)


@dataclass(frozen=True, slots=True)
class Room:
    """Set how much may wait or be judged at a time."""

    programs: int
    size: int  # bytes of requests
    per_client: int  # programs


class Backlog:
    """Give programs out in turns, one from each request. Thread-safe."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._changed = threading.Condition()
        self._turns: deque[Ticket] = deque()
        self._tickets: dict[int, Ticket] = {}  # by number of a program that is being judged
        self._clients: dict[str, int] = {}  # their open programs
        self._numbers = itertools.count()
        self.waiting = self.taken = self.size = 0
        self._closed = False
        self._reader = 0  # the number of the only one that may take programs

    def next_number(self) -> int:
        """Return a number for a program that no other has."""
        return next(self._numbers)

    def add(self, ticket: Ticket, retry_after_s: int) -> None:
        """Queue the programs of a request. Raise FullError if there is no room for them."""
        count = len(ticket.waiting)
        with self._changed:
            own = self._clients.get(ticket.client, 0)
            if own + count > self._room.per_client:
                raise FullError("this client has too many programs in the queue", retry_after_s)
            if self.waiting + self.taken + count > self._room.programs:
                raise FullError("the queue is full", retry_after_s)
            if self.size and self.size + ticket.size > self._room.size:
                raise FullError("the queue holds too many bytes", retry_after_s)
            self._clients[ticket.client] = own + count
            self.waiting += count
            self.size += ticket.size
            self._turns.append(ticket)
            self._changed.notify_all()

    def cancel(self, ticket: Ticket) -> int:
        """Drop what waits of a request, and return how many programs that are."""
        with self._changed:
            ticket.cancelled = True
            dropped = len(ticket.waiting)
            ticket.waiting.clear()
            if dropped and ticket in self._turns:
                self._turns.remove(ticket)
            self.waiting -= dropped
            self._leave(ticket, dropped)
            return dropped

    def items(self) -> Iterator[Task | None]:
        """Yield programs as they come, until ``close``. Before a wait, yield a pause.

        A later call ends what this one yields: programs are never given to a stage that failed.
        """
        with self._changed:
            self._reader += 1
            own = self._reader
            self._changed.notify_all()
        while True:
            task = self._take(own)
            while task is None:
                yield PAUSE
                with self._changed:
                    while not self._turns and not self._closed and own == self._reader:
                        self._changed.wait()
                    if own != self._reader or (self._closed and not self._turns):
                        return
                task = self._take(own)
            yield task

    def _take(self, reader: int) -> Task | None:
        with self._changed:
            while self._turns and reader == self._reader:
                ticket = self._turns.popleft()
                if not ticket.waiting:
                    continue
                task = ticket.waiting.popleft()
                number = task[1].number
                ticket.taken[number] = task
                self._tickets[number] = ticket
                self.waiting -= 1
                self.taken += 1
                if ticket.waiting:
                    self._turns.append(ticket)
                return task
        return None

    def answer(self, answers: Sequence[JudgeAnswer]) -> None:
        """Pass answers on to their requests."""
        by_ticket: dict[int, tuple[Ticket, list[JudgeAnswer]]] = {}
        with self._changed:
            for one in answers:
                ticket = self._tickets.pop(one.number, None)
                if ticket is None:
                    continue
                del ticket.taken[one.number]
                self.taken -= 1
                self._leave(ticket, 1)
                by_ticket.setdefault(id(ticket), (ticket, []))[1].append(one)
        for ticket, found in by_ticket.values():
            if not ticket.cancelled:
                ticket.answer(found)

    def lost(self) -> list[Task]:
        """Return what was taken and not answered. Nothing is taken until ``items`` is called."""
        with self._changed:
            self._reader += 1
            self._changed.notify_all()
            return [
                ticket.taken[number]
                for number, ticket in self._tickets.items()
                if number in ticket.taken
            ]

    def put_back(self, numbers: set[int]) -> None:
        """Queue programs again that were taken and not answered."""
        with self._changed:
            for number in numbers:
                ticket = self._tickets.pop(number, None)
                if ticket is None:
                    continue
                task = ticket.taken.pop(number)
                self.taken -= 1
                if ticket.cancelled:
                    self._leave(ticket, 1)
                    continue
                ticket.waiting.appendleft(task)
                self.waiting += 1
                if ticket not in self._turns:
                    self._turns.appendleft(ticket)
            self._changed.notify_all()

    def close(self) -> None:
        """End ``items`` once all that waits is taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _leave(self, ticket: Ticket, count: int) -> None:
        left = self._clients.get(ticket.client, 0) - count
        if left > 0:
            self._clients[ticket.client] = left
        else:
            self._clients.pop(ticket.client, None)
        if not ticket.open and ticket.size:
            self.size -= ticket.size
            ticket.size = 0
