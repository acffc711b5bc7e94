"""Queue the programs of all requests, and judge them on one sandbox that stays open."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from assay.errors import AssayError
from assay.judging import JudgeTask
from assay.sandbox import PAUSE, Sandbox
from assay.serve.options import ServeOptions
from assay.serve.stage import JudgeAnswer, JudgeWork, ServeStage, invalid_answer
from assay.work import run_in_background

AHEAD = 8  # programs per worker that are taken from the queue
ATTEMPTS = 2  # of a program whose stage ends
PAUSE_S = 0.5  # before the next stage after one that failed
RATE_OVER_S = 30.0
LEAST_RETRY_S, MOST_RETRY_S = 1, 60
Task = tuple[JudgeTask, JudgeWork]


class FullError(Exception):
    """A request does not fit. The client may try again later."""

    def __init__(self, why: str, retry_after_s: int) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


@dataclass(slots=True, eq=False)
class Ticket:
    """One request: what of it waits, and what is being judged."""

    client: str
    size: int  # bytes
    answer: Callable[[Sequence[JudgeAnswer]], None]  # called from any thread
    waiting: deque[Task]
    taken: int = 0  # programs that are being judged
    cancelled: bool = False


class Backlog:
    """The programs that wait for a worker: bounded, and given out in turns, one of each request.

    Thread-safe.
    """

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._changed = threading.Condition()
        self._turns: deque[Ticket] = deque()
        self._taken: dict[int, tuple[Ticket, Task]] = {}  # being judged, by number
        self._clients: dict[str, int] = {}  # their open programs
        self.next_number = itertools.count().__next__  # for a program; no other has it
        self.waiting = self.size = 0
        self._closed = False
        self._reader = 0  # the number of the only one that may take programs

    @property
    def taken(self) -> int:
        """The number of programs that are being judged."""
        return len(self._taken)

    def add(self, ticket: Ticket, retry_after_s: int) -> None:
        """Queue the programs of a request. Raise FullError if there is no room for them."""
        count = len(ticket.waiting)
        with self._changed:
            own = self._clients.get(ticket.client, 0)
            if own + count > self._options.client_quota:
                raise FullError("this client has too many programs in the queue", retry_after_s)
            if self.waiting + self.taken + count > self._options.queue:
                raise FullError("the queue is full", retry_after_s)
            if self.size and self.size + ticket.size > self._options.queue_mb << 20:
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
            if task := self._take(own):
                yield task
                continue
            yield PAUSE
            with self._changed:
                self._changed.wait_for(lambda: self._turns or self._closed or own != self._reader)
                if own != self._reader or not self._turns:
                    return

    def _take(self, reader: int) -> Task | None:
        with self._changed:
            while self._turns and reader == self._reader:
                ticket = self._turns.popleft()
                if not ticket.waiting:
                    continue
                task = ticket.waiting.popleft()
                self._taken[task[1].number] = ticket, task
                ticket.taken += 1
                self.waiting -= 1
                if ticket.waiting:
                    self._turns.append(ticket)
                return task
        return None

    def answer(self, answers: Sequence[JudgeAnswer]) -> None:
        """Pass answers on to their requests."""
        by_ticket: dict[int, tuple[Ticket, list[JudgeAnswer]]] = {}
        with self._changed:
            for one in answers:
                if one.number not in self._taken:
                    continue
                ticket, _ = self._taken.pop(one.number)
                ticket.taken -= 1
                self._leave(ticket, 1)
                by_ticket.setdefault(id(ticket), (ticket, []))[1].append(one)
        for ticket, own in by_ticket.values():
            if not ticket.cancelled:
                ticket.answer(own)

    def lost(self) -> list[Task]:
        """Return what was taken and not answered. Nothing is taken until ``items`` is called."""
        with self._changed:
            self._reader += 1
            self._changed.notify_all()
            return [task for _, task in self._taken.values()]

    def put_back(self, tasks: Sequence[Task]) -> None:
        """Queue programs again that were taken and not answered."""
        with self._changed:
            for task in tasks:
                if task[1].number not in self._taken:
                    continue
                ticket, _ = self._taken.pop(task[1].number)
                ticket.taken -= 1
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
        if not ticket.waiting and not ticket.taken and ticket.size:
            self.size -= ticket.size
            ticket.size = 0


class StageSupervisor:
    """The stage that runs for as long as the server does. If it fails, another one is started.

    A program that loses its stage twice is ``invalid``: a failure of the server is never a wrong
    answer.
    """

    def __init__(
        self, sandbox: Sandbox, workers: int, options: ServeOptions, report: Callable[[str], None]
    ) -> None:
        self.backlog = Backlog(options)
        self.sandbox = sandbox
        self.restarts = 0
        self._stage = ServeStage(AHEAD * workers, workers)
        self._report = report
        self._answered: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()
        self._attempts: Counter[int] = Counter()
        self._ending = threading.Event()
        self._thread = run_in_background(self._run, "assay-serve-judge")

    @property
    def is_alive(self) -> bool:
        """True while programs are being judged."""
        return self._thread.is_alive() and not self._ending.is_set()

    def submit(self, ticket: Ticket) -> None:
        """Queue a request. Raise FullError if there is no room for it."""
        self.backlog.add(ticket, self.estimate_wait_s())

    def estimate_wait_s(self) -> int:
        """Return after how many seconds a client should try again, from the recent rate."""
        with self._lock:
            self._forget()
            done = sum(count for _, count in self._answered)
            since = self._answered[0][0] if done else 0.0
        rate = done / max(1.0, time.monotonic() - since) if done else 1.0
        waiting = self.backlog.waiting + self.backlog.taken
        return max(LEAST_RETRY_S, min(MOST_RETRY_S, round(waiting / rate)))

    def close(self, timeout_s: float = 10.0) -> None:
        """End the stage and the sandbox. What still runs is lost."""
        self._ending.set()
        self.backlog.close()
        if not self.backlog.taken:
            self._thread.join(timeout_s)
        self.sandbox.close()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.sandbox.run_stage(self._stage, self.backlog.items(), self._answer)
            except AssayError as error:
                self._fail(str(error))
            except Exception as error:  # a bug of ours must not end the service
                self._fail(f"{type(error).__name__}: {error}")

    def _answer(self, answers: Sequence[JudgeAnswer]) -> None:
        with self._lock:
            self._answered.append((time.monotonic(), len(answers)))
            self._forget()
            for one in answers:
                self._attempts.pop(one.number, None)
        self.backlog.answer(answers)

    def _forget(self) -> None:
        oldest = time.monotonic() - RATE_OVER_S
        while self._answered and self._answered[0][0] < oldest:
            self._answered.popleft()

    def _fail(self, why: str) -> None:
        """Queue again what the stage had taken, or give it up."""
        if self._ending.is_set():
            return
        self._report(why)
        self.restarts += 1
        lost = self.backlog.lost()
        with self._lock:
            self._attempts.update(work.number for _, work in lost)
            hopeless = [work for _, work in lost if self._attempts[work.number] >= ATTEMPTS]
        self._answer([invalid_answer(work, why) for work in hopeless])
        self.backlog.put_back(lost)
        self._ending.wait(PAUSE_S)
