"""Hosts in this process: what a dispatch does, without Ray."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from assay.cluster.connection import LostHostError
from assay.cluster.dispatch import HostHandle
from assay.cluster.host import Answer, AnyItem, Host
from assay.cluster.host_messages import Taken, ToHost, encode
from assay.errors import AssayError, RunError
from assay.sandbox import PAUSE
from assay.sandbox.stages import Items


@dataclass(frozen=True, slots=True)
class Doubling:
    """Answer every number with its double, and the host's name."""

    def give_up(self, context: str, payload: int, why: str) -> tuple[int, str]:  # noqa: ARG002
        return payload, f"given up: {why}"


class NumberHost(Host):
    """Answer numbers. ``before`` is called with each, and may raise or block."""

    def __init__(self, name: str, before: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self.name, self._before = name, before
        self.contexts: list[str] = []

    def run(self, stage: Doubling, items: Iterator[AnyItem | None], answer: Answer) -> None:  # noqa: ARG002
        for item in items:
            if item is not PAUSE:
                self._before(item.payload)
                self.contexts.append(item.context)
                answer(item.tag, (2 * item.payload, self.name))


class LocalHost(HostHandle):
    """Call the methods of a host in this process, until it is lost."""

    def __init__(self, host: NumberHost, weight: int = 2) -> None:
        super().__init__(host.name, weight)
        self.host = host
        self.batches: list[int] = []
        self._number = 0
        self._lost = threading.Event()
        self._done: Callable[[bytes | BaseException], None] = lambda _: None
        self._asking = False

    def put(self, messages: list[ToHost]) -> None:
        if self._lost.is_set():
            return
        self.batches += [len(one.items) for one in messages if isinstance(one, Items)]
        content, large = encode(messages)
        self.host.put(self._number, content, *large)
        self._number += 1

    def take(self, done: Callable[[bytes | BaseException], None]) -> None:
        self._done = done
        if not self._asking:
            self._asking = True
            threading.Thread(target=self._wait, daemon=True).start()

    def lose(self) -> None:
        """End the host, as a node that is switched off."""
        self._lost.set()

    def _wait(self) -> None:
        while True:
            content = self.host.take(0.001, 0.05)
            taken: Taken = pickle.loads(content)
            self._asking = False
            if self._lost.is_set():
                self._done(LostHostError("switched off"))
                return
            news = taken.answers or taken.starved or taken.failure
            if news or taken.consumed != self.consumed:
                self._done(content)
                return
            self._asking = True


class LocalHosts:
    """Have these hosts, and start others in the place of lost ones if there are any."""

    def __init__(self, hosts: list[LocalHost], spare: list[LocalHost] | None = None) -> None:
        self.hosts, self.spare = list(hosts), list(spare or [])
        self.dropped: list[tuple[str, str]] = []
        self.error: AssayError = RunError("no hosts")

    def start_missing(self, on_ready: Callable[[HostHandle], None]) -> bool:
        for host in self.hosts:
            on_ready(host)
        return bool(self.hosts)

    def drop(self, host: HostHandle, why: BaseException) -> None:
        self.dropped.append((host.name, str(why)))
        self.hosts = [one for one in self.hosts if one is not host]
        if isinstance(why, AssayError) and not isinstance(why, LostHostError):
            self.error = why
        if self.spare:
            self.hosts.append(self.spare.pop())

    def explain(self) -> AssayError:
        return self.error


def numbers(count: int, context: str = "context") -> Iterator[Any]:
    for number in range(count):
        yield context, number
