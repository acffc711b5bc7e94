"""Extract in worker processes, so that no text can end, stop or fill the harness.

A worker limits its CPU time per text and its memory, and ends with the harness. Texts are sent in
batches. If a worker fails at a batch, its texts are sent to other workers, one at a time. A text at
which a worker fails alone has no program, with the reason ``extraction``.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from assay.errors import ExtractionError
from assay.extract import NO_CODE
from assay.extract._messages import Change
from assay.extract._process import (
    Extraction,
    ExtractionLimits,
    ExtractionRequest,
    ExtractorLostError,
    WorkerProcess,
)
from assay.work import pool
from assay.work.machine import usable_cores

__all__ = ["PAUSE", "Change", "Extraction", "ExtractionLimits", "ExtractionRequest", "Extractor"]

LONGEST = 1 << 20  # characters; finding code takes time that grows with them
BATCH_TEXTS, BATCH_CHARACTERS = 32, 1 << 17
DEFAULT_LIMITS = ExtractionLimits()
PAUSE = None  # among requests: the next one may take long to come

T = TypeVar("T")


class Extractor:
    """Manage worker processes that start when there is work and stay until ``close``."""

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
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
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
        for (number, tag), found in self.stream(numbered):
            waiting[number] = tag, found
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
        batches = pool.stream(
            batched(requests), self._extract_tagged, self._most, wants_more=is_full
        )
        for batch in batches:
            yield from batch

    def _extract_tagged(
        self, batch: Sequence[tuple[T, ExtractionRequest]], _on_idle: Callable[[], None]
    ) -> Sequence[tuple[T, Extraction]]:
        found = self._extract([request for _, request in batch])
        return [(tag, one) for (tag, _), one in zip(batch, found, strict=True)]

    def _extract(self, batch: Sequence[ExtractionRequest]) -> list[Extraction]:
        short = [request for request in batch if len(request.text) <= LONGEST]
        found = iter(self._extract_short(short) if short else [])
        return [
            next(found) if len(request.text) <= LONGEST else _refuse(request) for request in batch
        ]

    def _extract_short(self, batch: Sequence[ExtractionRequest]) -> list[Extraction]:
        try:
            return self._extract_once(batch)
        except ExtractorLostError as error:
            if len(batch) == 1 and error.certain:
                return [_fail(error)]
        return [self._extract_alone(request) for request in batch]

    def _extract_alone(self, request: ExtractionRequest) -> Extraction:
        try:
            return self._extract_once([request])[0]
        except ExtractorLostError as error:
            return _fail(error)

    def _extract_once(self, batch: Sequence[ExtractionRequest]) -> list[Extraction]:
        with self._lend_worker() as worker:
            return worker.extract(batch)

    @contextlib.contextmanager
    def _lend_worker(self) -> Iterator[WorkerProcess]:
        """Lend a worker. One that fails is not used again."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        worker = worker or WorkerProcess(self._limits, self._interpreter)
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


def _fail(error: ExtractorLostError) -> Extraction:
    return Extraction(NO_CODE, "extraction", str(error))


def _refuse(request: ExtractionRequest) -> Extraction:
    why = f"{len(request.text)} characters; the limit is {LONGEST}"
    return Extraction(NO_CODE, "too-long", why)
