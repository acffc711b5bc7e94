"""Run stages in another process: items in, answers out, in batches. The driver calls the methods.

A host knows nothing of Ray. It is an actor there, and an ordinary object in tests.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from assay.cluster.messages import Taken, ToHost, decode, make_portable
from assay.sandbox import PAUSE, Item, Stage
from assay.sandbox.stages import ContextsReceived, Items, StageEnd, StageStart
from assay.work import run_in_background

AnyItem = Item[Any, Any]
Answer = Callable[[int, Any], None]
MOST_ANSWERS = 4096  # in one batch
PATIENCE, ENOUGH = 10, 8


class Host:
    """Take messages in their order, run one stage after the other, and collect the answers."""

    eager = False  # report at once that items are lacking

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._early: dict[int, tuple[bytes, tuple[bytes, ...]]] = {}
        self._next = 0
        self._contexts = ContextsReceived()
        self._inbox: deque[AnyItem | StageStart | StageEnd] = deque()
        self._outbox: list[tuple[int, Any]] = []
        self._consumed = self._received = self._answered = 0
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
                messages = decode(*self._early.pop(self._next))
                self._next += 1
                for message in messages:
                    self._receive(message)
            self._changed.notify_all()

    def take(self, linger_s: float, wait_s: float) -> bytes:
        """Return answers as soon as there are some, with those of the next ``linger_s`` seconds.

        While there are enough items, wait for more answers, up to ``PATIENCE`` times as long.
        """
        with self._changed:
            self._changed.wait_for(self._has_news, wait_s)
            lingers = bool(self._outbox) and self._failure is None and not self._is_idle()
        for _ in range(PATIENCE if lingers else 0):
            time.sleep(linger_s)
            if len(self._inbox) < ENOUGH or self._failure is not None:
                break  # otherwise there is no hurry: a call costs about 1 CPU-ms on both sides
        with self._changed:
            answers, self._outbox = self._outbox[:MOST_ANSWERS], self._outbox[MOST_ANSWERS:]
            starved, self._starved = self._starved, False
            failure = None
            if self._failure is not None:
                failure = make_portable(self._failure, os.uname().nodename)
            taken = Taken(
                answers, self._consumed, starved, self.tokens, self.loading, failure
            )  # fmt: skip
        return pickle.dumps(taken, pickle.HIGHEST_PROTOCOL)

    def _has_news(self) -> bool:
        return bool(self._outbox) or self._failure is not None or (self.eager and self._starved)

    def _is_idle(self) -> bool:
        return self._answered == self._received

    def _receive(self, message: ToHost) -> None:
        if isinstance(message, Items):
            items = self._contexts.unpack(message)
            self._received += len(items)
            self._inbox.extend(items)
        else:
            self._inbox.append(message)

    def _serve(self) -> None:
        """Run one stage after the other, until one fails: the driver then replaces this host."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._inbox)
                    message = self._inbox.popleft()
                if isinstance(message, StageStart):
                    self.run(message.stage, self._items(), self._answer)
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _items(self) -> Iterator[AnyItem | None]:
        """Yield what arrives until the end of a stage, and a pause before every wait."""
        while True:
            if not self._inbox:
                yield PAUSE
            with self._changed:
                while not self._inbox:
                    if not self._starved:
                        self._starved = True
                        self._changed.notify_all()
                    self._changed.wait()
                message = self._inbox.popleft()
                if isinstance(message, Item):
                    self._consumed += 1
            if isinstance(message, StageEnd):
                return
            assert isinstance(message, Item)
            yield message

    def _answer(self, tag: int, result: Any) -> None:
        if result is None:
            return
        with self._changed:
            self._outbox.append((tag, result))
            self._answered += 1
            if len(self._outbox) == 1:
                self._changed.notify_all()


class TaggedStage:
    """Carry the driver's tags through a sandbox that numbers items by itself."""

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
