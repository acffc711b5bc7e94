"""Extract in worker processes, so that no text can end, stop or fill the harness.

A worker limits its CPU time per text and its memory, and ends with the harness. Texts are sent in
batches. If a worker fails at a batch, its texts are sent to other workers, one at a time. A text at
which a worker fails alone has no program, with the reason ``extraction``.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from assay.errors import ExtractionError
from assay.extract import NO_CODE
from assay.extract._messages import Change, Extraction, TextRequest, decode_extraction
from assay.types import Problem, PromptForm
from assay.work import PAUSE, pool
from assay.work.machine import usable_cores
from assay.work.process import ChildProcess

__all__ = ["PAUSE", "Change", "Extraction", "ExtractionLimits", "ExtractionRequest", "Extractor"]

LONGEST = 1 << 20  # characters; finding code takes time that grows with them
BATCH_TEXTS, BATCH_CHARACTERS = 32, 1 << 17
START_S = 60.0
REPLY_BYTES = 1 << 28
SCRIPT = (
    "import sys; sys.path.append(sys.argv[1]); from assay.extract._worker import main;"
    "main(int(sys.argv[4]), 0, float(sys.argv[2]), int(sys.argv[3]))"
)
# No site packages: to find them takes longer than to import the rules.
OPTIONS = ("-I", "-S", "-B", "-c", SCRIPT, str(Path(__file__).parents[2]))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """The resources that extraction may use for one text."""

    cpu_s: float = 10.0
    wall_s: float = 60.0  # ends a process that uses no CPU time for so long
    memory_mb: int = 1024


DEFAULT_LIMITS = ExtractionLimits()


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A text to extract a program from."""

    text: str
    problem: Problem
    form: PromptForm
    without: frozenset[str] = frozenset()  # rules to leave out
    explain: bool = False

    def encode(self) -> TextRequest:
        """Return what a worker needs."""
        problem, tests = self.problem, self.problem.tests
        without = tuple(sorted(self.without.union(problem.without_rules)))
        answer = (tests.answer.kind, tests.answer.function) if tests.answer else ()
        return TextRequest(
            self.text, problem.begun or problem.prompt, tests.entry_point, tests.code,
            tests.preamble, self.form, without, self.explain, answer, problem.only_rule,
            problem.suffix,
        )  # fmt: skip


class ExtractorLostError(Exception):
    """A worker ended or gave no answer. ``certain``: only the text can be the cause."""

    def __init__(self, why: str, *, certain: bool = False) -> None:
        super().__init__(why)
        self.certain = certain


class ExtractionProcess(ChildProcess):
    """A process that is ready for batches. Only ``kill`` may be called from any thread."""

    def __init__(self, limits: ExtractionLimits, interpreter: str = sys.executable) -> None:
        self._limits = limits
        arguments = (interpreter, *OPTIONS, str(limits.cpu_s), str(limits.memory_mb))
        try:
            super().__init__(
                arguments, variables={"LANG": "C.UTF-8"}, folder="/", silence_s=START_S
            )
            self._receive_reply()
        except (OSError, ExtractorLostError) as error:
            if isinstance(error, ExtractorLostError):
                self.close()
            raise ExtractionError(
                f"extraction: no worker process can start ({error}). "
                "Check the limits on memory and processes."
            ) from error
        self.limit_silence(limits.wall_s)

    def extract(self, batch: Sequence[ExtractionRequest]) -> list[Extraction]:
        """Return an extraction per request. Raise ExtractorLostError if the process fails."""
        try:
            self.send(json.dumps([request.encode() for request in batch]).encode() + b"\n")
        except OSError as error:
            raise self._explain_loss(error) from error
        reply = self._receive_reply()
        try:
            found = [decode_extraction(one) for one in json.loads(reply)]
            if len(found) != len(batch):
                raise ValueError(f"{len(found)} extractions of {len(batch)} texts")
        except (ValueError, TypeError, RecursionError) as error:
            raise ExtractorLostError(f"the worker process gave a wrong answer: {error}") from error
        return found

    def _receive_reply(self) -> bytes:
        try:
            return self.receive_line(REPLY_BYTES)
        except (OSError, EOFError) as error:
            raise self._explain_loss(error) from error

    def _explain_loss(self, error: Exception) -> ExtractorLostError:
        if isinstance(error, TimeoutError):
            return ExtractorLostError(f"no result within {self._limits.wall_s:g} s")
        if self.wait(1.0) == -signal.SIGPROF:
            return ExtractorLostError(
                f"no result within {self._limits.cpu_s:g} s of CPU time", certain=True
            )
        return ExtractorLostError(f"the worker process ended ({self.explain_end(0.0)})")


class Extractor:
    """Worker processes that start when there is work and stay until ``close``."""

    def __init__(
        self,
        workers: int = 0,
        limits: ExtractionLimits = DEFAULT_LIMITS,
        interpreter: str = sys.executable,
    ) -> None:
        """Extract by the grammar of ``interpreter``: that of the Python that judges programs."""
        cores = usable_cores()
        self._most = min(workers, cores) if workers else cores
        self._limits = limits
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._idle: list[ExtractionProcess] = []
        self._busy: set[ExtractionProcess] = set()
        self._closed = False

    def __enter__(self) -> Extractor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers. What still runs is lost."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for worker in self._busy:
                worker.kill()
        for worker in idle:
            worker.close()

    def in_order(
        self, requests: Iterable[tuple[T, ExtractionRequest]]
    ) -> Iterator[tuple[T, Extraction]]:
        """Yield the extraction of every request, with what came with the request."""
        numbered = (((n, tag), request) for n, (tag, request) in enumerate(requests))
        waiting: dict[int, tuple[T, Extraction]] = {}
        following = 0
        for (number, tag), extraction in self.stream(numbered):
            waiting[number] = tag, extraction
            while following in waiting:
                yield waiting.pop(following)
                following += 1

    def stream(
        self, requests: Iterable[tuple[T, ExtractionRequest] | None]
    ) -> Iterator[tuple[T, Extraction]]:
        """Yield the same in the order of completion.

        Other threads read ``requests``, one at a time, and this may block after a ``PAUSE``. What
        came before is not held back until a batch is full.
        """
        # A full batch may be the first of a backlog.
        for batch in pool.stream(batched(requests), self._extract, self._most, wants_more=is_full):
            yield from batch

    def _extract(
        self, batch: Sequence[tuple[T, ExtractionRequest]], _on_idle: Callable[[], None]
    ) -> list[tuple[T, Extraction]]:
        short = [request for _, request in batch if len(request.text) <= LONGEST]
        extractions = iter(self._extract_short(short) if short else [])
        return [
            (tag, next(extractions) if len(request.text) <= LONGEST else _refuse(request))
            for tag, request in batch
        ]

    def _extract_short(
        self, batch: Sequence[ExtractionRequest], is_last: bool = False
    ) -> list[Extraction]:
        """Extract from a batch. If that loses its worker, give each text another one alone.

        Any text of a batch may be the cause, or none of them. So only a text that has lost a worker
        alone after that is at fault, or one that used up its CPU time alone.
        """
        try:
            with self._lend_worker() as worker:
                return worker.extract(batch)
        except ExtractorLostError as error:
            if len(batch) == 1 and (is_last or error.certain):
                return [Extraction(NO_CODE, "extraction", str(error))]
        return [self._extract_short([request], is_last=True)[0] for request in batch]

    @contextlib.contextmanager
    def _lend_worker(self) -> Iterator[ExtractionProcess]:
        """Lend a worker. One that fails is not used again."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        worker = worker or ExtractionProcess(self._limits, self._interpreter)
        with self._lock:
            self._busy.add(worker)
        try:
            if self._closed:
                raise ExtractorLostError("closed")
            yield worker
        except BaseException as error:
            with self._lock:
                self._busy.discard(worker)
            worker.close()
            if self._closed:
                raise ExtractionError("extraction: the workers were closed.") from error
            raise
        with self._lock:
            self._busy.discard(worker)
            if not self._closed:
                self._idle.append(worker)
                return
        worker.close()


def batched(
    requests: Iterable[tuple[T, ExtractionRequest] | None],
) -> Iterator[Sequence[tuple[T, ExtractionRequest]]]:
    """Yield the requests in batches that are full, or end at a pause or at the end."""
    batch: list[tuple[T, ExtractionRequest]] = []
    characters = 0
    for item in requests:
        if item is not PAUSE:
            batch.append(item)
            characters += len(item[1].text)
        full = len(batch) >= BATCH_TEXTS or characters >= BATCH_CHARACTERS
        if batch and (item is PAUSE or full):
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def is_full(batch: Sequence[tuple[T, ExtractionRequest]]) -> bool:
    """Return whether a batch has enough texts, or long enough ones, to be sent."""
    characters = sum(len(request.text) for _, request in batch)
    return len(batch) >= BATCH_TEXTS or characters >= BATCH_CHARACTERS


def _refuse(request: ExtractionRequest) -> Extraction:
    why = f"{len(request.text)} characters; the limit is {LONGEST}"
    return Extraction(NO_CODE, "too-long", why)
