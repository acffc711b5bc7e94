"""Run stages in another process: items in, answers out, in batches. The driver calls the methods.

A host knows nothing of Ray. It is an actor there, and an ordinary object in tests.
"""

from __future__ import annotations

import os
import pickle
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from assay import __version__
from assay.cluster.host_messages import Taken, decode, make_portable
from assay.errors import AssayError, SandboxError
from assay.sandbox import PAUSE, Item, Sandbox, Stage, open_sandbox
from assay.sandbox.stages import StageInbox
from assay.types import Capabilities
from assay.work import run_in_background
from assay.work.machine import usable_cores

AnyItem = Item[Any, Any]
Answer = Callable[[int, Any], None]
MOST_ANSWERS = 4096  # in one batch
PATIENCE, ENOUGH = 10, 8


class Host:
    """A place where stages run one after the other, and whose answers are collected."""

    eager = False  # report at once that items are lacking

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._early: dict[int, tuple[bytes, tuple[bytes, ...]]] = {}
        self._next = 0
        self._inbox = StageInbox()
        self._outbox: list[tuple[int, Any]] = []
        self._answered = 0
        self._starved = False
        self._failure: BaseException | None = None
        self.tokens, self.loading = 0, False
        run_in_background(self._serve)

    def run(self, stage: Any, items: Iterator[AnyItem | None], answer: Answer) -> None:
        """Run a stage with this host's sandbox or model."""
        raise NotImplementedError

    def describe_place(self) -> tuple[str, int]:
        """Return the machine and the process, for messages and tests."""
        return os.uname().nodename, os.getpid()

    def put(self, number: int, content: bytes, *large: bytes) -> None:
        """Take messages. They may arrive in any order; ``number`` has the right one."""
        with self._changed:
            self._early[number] = content, large
            while self._next in self._early:
                for message in decode(*self._early.pop(self._next)):
                    self._inbox.put(message)
                self._next += 1

    def take(self, linger_s: float, wait_s: float) -> bytes:
        """Return answers as soon as there are some, with those of the next ``linger_s`` seconds.

        While there are enough items, wait for more answers, up to ``PATIENCE`` times as long.
        """
        with self._changed:
            self._changed.wait_for(self._has_news, wait_s)
            is_idle = self._answered == self._inbox.received
            lingers = bool(self._outbox) and self._failure is None and not is_idle
        for _ in range(PATIENCE if lingers else 0):
            time.sleep(linger_s)
            if len(self._inbox) < ENOUGH or self._failure is not None:
                break  # otherwise there is no hurry: a call costs about 1 CPU-ms on both sides
        with self._changed:
            answers, self._outbox = self._outbox[:MOST_ANSWERS], self._outbox[MOST_ANSWERS:]
            starved, self._starved = self._starved, False
            error, node = self._failure, os.uname().nodename
            failure = None if error is None else make_portable(error, node)
            taken = Taken(
                answers, self._inbox.consumed, starved, self.tokens, self.loading, failure
            )  # fmt: skip
        return pickle.dumps(taken, pickle.HIGHEST_PROTOCOL)

    def _has_news(self) -> bool:
        return bool(self._outbox) or self._failure is not None or (self.eager and self._starved)

    def _serve(self) -> None:
        """Run one stage after the other, until one fails: the driver then replaces this host."""
        try:
            for stage in self._inbox.stages():
                self.run(stage, self._inbox.items(self._starve), self._answer)
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _starve(self) -> None:
        with self._changed:
            self._starved = True
            self._changed.notify_all()

    def _answer(self, tag: int, result: Any) -> None:
        if result is None:
            return
        with self._changed:
            self._outbox.append((tag, result))
            self._answered += 1
            if len(self._outbox) == 1:
                self._changed.notify_all()


class TaggedStage:
    """A stage that carries the driver's tags through a sandbox that numbers items by itself."""

    def __init__(self, stage: Stage[Any, Any, Any]) -> None:
        self._stage = stage

    def run(self, sandbox: Any, items: Iterator[AnyItem | None], answer: Answer) -> None:
        tags: dict[int, int] = {}

        def untag() -> Iterator[AnyItem | None]:
            for item in items:
                if item is PAUSE:
                    yield PAUSE
                else:
                    tags[item.tag], payload = item.payload
                    yield item._replace(payload=payload)

        def pass_on(tag: int, result: Any) -> None:
            answer(tag, None if result is None else (tags.pop(tag), result))

        self._stage.run(sandbox, untag(), pass_on)

    def give_up(self, context: Any, payload: Any, why: str) -> tuple[int, Any]:
        tag, own = payload
        return tag, self._stage.give_up(context, own, why)


class PoolSettings(NamedTuple):
    """The sandbox that every node opens."""

    kind: str
    workers: int  # per node; 0: one per core
    tier: str
    python: str = ""  # version or path of the Python that judges, on every node


class PoolFacts(NamedTuple):
    """The promises of a node's sandbox, and how many programs it judges at a time."""

    capabilities: Capabilities
    workers: int
    version: str = __version__


class JudgePool(Host):
    """The sandbox of a node, behind a host."""

    def __init__(self, cpus: int = 0) -> None:
        super().__init__()
        self._cpus = cpus  # that Ray says the node has; 0: not said
        self._sandbox: Sandbox | None = None

    def open(self, settings: PoolSettings) -> PoolFacts:
        """Open the sandbox. Raise SandboxError that says what the node lacks."""
        cores = min(self._cpus, usable_cores()) if self._cpus else usable_cores()
        workers = settings.workers or cores
        try:
            self._sandbox = open_sandbox(settings.kind, workers, settings.tier, settings.python)
        except AssayError as error:
            raise SandboxError(f"node {platform.node()}: {error}") from error
        return PoolFacts(self._sandbox.capabilities(), workers)

    def run(self, stage: Any, items: Iterator[AnyItem | None], answer: Answer) -> None:
        assert self._sandbox is not None

        def tag() -> Iterator[tuple[Any, Any] | None]:
            for item in items:
                yield PAUSE if item is PAUSE else (item.context, (item.tag, item.payload))

        def pass_on(results: Sequence[tuple[int, Any]]) -> None:
            for one, result in results:
                answer(one, result)

        self._sandbox.run_stage(TaggedStage(stage), tag(), pass_on)

    def release(self) -> None:
        """Release what is kept warm. The next stage starts it again."""
        if self._sandbox is not None:
            self._sandbox.close()
