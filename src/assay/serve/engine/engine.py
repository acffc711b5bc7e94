"""Judge the programs of all requests on one sandbox that stays open."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from assay.errors import AssayError
from assay.sandbox import Sandbox
from assay.serve.engine.backlog import Backlog, Room, Ticket
from assay.serve.engine.stage import ServeStage, invalid_answer
from assay.serve.engine.work import JudgeAnswer

AHEAD = 8  # programs per worker that are taken from the queue
ATTEMPTS = 2  # of a program whose stage ends
PAUSE_S = 0.5  # before the next stage after one that failed
RATE_OVER_S = 30.0
LEAST_RETRY_S, MOST_RETRY_S = 1, 60

Report = Callable[[str], None]


class StageSupervisor:
    """The stage that runs for as long as the server does. If it fails, another one is started.

    A program that loses its stage twice is ``invalid``: a failure of the server is never a wrong
    answer.
    """

    def __init__(self, sandbox: Sandbox, workers: int, room: Room, report: Report) -> None:
        self.backlog = Backlog(room)
        self.sandbox = sandbox
        self.restarts = 0
        self._stage = ServeStage(AHEAD * workers, workers)
        self._report = report
        self._answered: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()
        self._attempts: Counter[int] = Counter()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="assay-serve-judge", daemon=True)

    def start(self) -> None:
        """Start to judge."""
        self._thread.start()

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
            since = self._answered[0][0] if self._answered else 0.0
        seconds = max(1.0, time.monotonic() - since) if done else 1.0
        rate = done / seconds if done else 1.0
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
            given_up = [task for task in lost if self._attempts[task[1].number] >= ATTEMPTS]
        self._answer([invalid_answer(work, why) for _, work in given_up])
        self.backlog.put_back({work.number for _, work in lost})
        self._ending.wait(PAUSE_S)
