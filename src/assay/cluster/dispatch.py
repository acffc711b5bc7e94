"""Hand the items of one stage out to hosts in batches, and take their answers.

Hosts join and leave at any time, an item costs the driver microseconds, and batches grow with the
rate at which a host works.
"""

from __future__ import annotations

import math
import pickle
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from assay.cluster.host_messages import Taken, ToHost
from assay.errors import AssayError
from assay.sandbox import Item
from assay.sandbox.stages import ContextsSent, StageEnd, StageStart
from assay.work.dispatch import Dispatch, Recoverable, Share

# An item may lose two hosts beside any others, one beside other such items, and one alone.
SHARED = 2
ATTEMPTS = SHARED + 2
BATCH = 128  # items that are sent together at most: a call costs the driver 0.2 ms
MOST_AHEAD = 2048  # items that a host holds and has not started
LOOK_EVERY_S = 3.0  # for hosts that can be started
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")


class HostHandle:
    """The driver's view of one host. It may serve one stage after the other."""

    def __init__(self, name: str, weight: int) -> None:
        self.name = name
        self.weight = weight  # how many items it works on at a time, about
        self.contexts = ContextsSent()
        self.sent = self.consumed = 0  # items, of all stages so far

    def put(self, messages: list[ToHost]) -> None:
        """Send messages, and do not wait."""
        raise NotImplementedError

    def take(self, done: Callable[[bytes | BaseException], None]) -> None:
        """Ask for answers. ``done`` gets them later, from any thread: a pickled ``Taken``.

        A second call before that replaces the function.
        """
        raise NotImplementedError


class Hosts(Protocol):
    """The hosts of one kind: those that are there, and those that replace lost ones."""

    def start_missing(self, on_ready: Callable[[HostHandle], None]) -> bool:
        """Start the hosts that are missing. ``on_ready`` gets those that are ready, now or later.

        Return False if there are none and none is being started.
        """
        ...

    def drop(self, host: HostHandle, why: BaseException) -> None:
        """Give up a host that is lost or has failed. Another may be started in its place."""
        ...

    def explain(self) -> AssayError:
        """Return why there are no hosts."""
        ...


@dataclass(slots=True)
class _HostShare(Share[C, P]):
    """A host and the items that it was given."""

    host: HostHandle
    target: int  # items that it may hold and not have started
    suspected: bool = False  # what it was given may be what ends hosts
    limited: bool = False  # it could have been given more
    started: bool = False
    lost: bool = False

    @property
    def room(self) -> int:
        return self.target - (self.host.sent - self.host.consumed)

    @property
    def reserved(self) -> bool:
        """Return whether it works on suspects and must get nothing else."""
        return self.suspected and bool(self.held)

    @property
    def load(self) -> float:
        return len(self.held) / self.host.weight


class HostDispatch(Dispatch[C, P, R, _HostShare[C, P]]):
    """The run of one stage on hosts, each of which may hold ``ahead`` items per worker at first.

    Items of a host that is lost are given to others. What has lost several hosts is a suspect. Few
    suspects get an idle host together, then each gets one alone. Only if that is lost too, the item
    is given up: nothing was beside it. An error that a host reports ends the stage, unless it is of
    a kind in ``retried``.
    """

    def __init__(
        self,
        stage: Recoverable[C, P, R],
        items: Iterable[tuple[C, P] | None],
        hosts: Hosts,
        ahead: int,
        retried: tuple[type[AssayError], ...] = (),
        watch: Callable[[HostHandle, Taken], None] = lambda *_: None,
    ) -> None:
        super().__init__(stage, items)
        self._hosts, self._ahead, self._retried, self._watch = hosts, ahead, retried, watch
        self._retry: deque[Item[C, P]] = deque()
        self._suspects: deque[Item[C, P]] = deque()  # first those that need a host alone
        self._events: queue.SimpleQueue[tuple[_HostShare[C, P], bytes | BaseException] | None]
        self._events = queue.SimpleQueue()
        # By identity. Lost hosts stay, so that no other one gets the identity of one of them.
        self._known: dict[int, HostHandle] = {}
        self._look_at = 0.0

    def _begin(self) -> None:
        self._look_at = time.monotonic() + LOOK_EVERY_S
        if not self._hosts.start_missing(self._join) and not self._shares:
            raise self._hosts.explain()
        with self._changed:
            self._give_again()

    def _wake(self) -> None:
        self._events.put(None)

    def _receive(self) -> Iterator[list[R]]:
        if time.monotonic() > self._look_at:
            self._begin()
        try:
            event = self._events.get(timeout=LOOK_EVERY_S)
        except queue.Empty:
            return
        if event is not None:
            yield self._handle(*event)

    def _handle(self, share: _HostShare[C, P], event: bytes | BaseException) -> list[R]:
        if share.lost:
            return []
        if isinstance(event, BaseException):
            return self._replace(share, event)
        taken: Taken = pickle.loads(event)
        results = self._accept(share, taken)
        if taken.failure is not None:
            if not isinstance(taken.failure, self._retried):
                raise taken.failure
            return results + self._replace(share, taken.failure)
        self._watch(share.host, taken)
        with self._changed:
            self._give_again()
        self._ask(share)
        return results

    def _accept(self, share: _HostShare[C, P], taken: Taken) -> list[R]:
        """Return the new answers of a host, and let it hold more if it had to wait."""
        with self._changed:
            results = [
                result for tag, result in taken.answers if share.held.pop(tag, None) is not None
            ]
            self._open -= len(results)
            share.host.consumed = taken.consumed
            if taken.starved and share.limited:
                share.target = min(2 * share.target, MOST_AHEAD)
            share.limited = False
            self._changed.notify_all()
        return results

    def _replace(self, share: _HostShare[C, P], why: BaseException) -> list[R]:
        """Give the items of a lost host to others. Return answers for those that are given up."""
        with self._changed:
            share.lost = True
            self._shares.remove(share)
            hopeless: list[Item[C, P]] = []
            for item, losses in self._take_back(share):
                if losses < SHARED:
                    self._retry.append(item)
                elif losses == SHARED:
                    self._suspects.append(item)
                elif losses < ATTEMPTS:
                    self._suspects.appendleft(item)
                else:
                    hopeless.append(item)
            self._open -= len(hopeless)
            self._changed.notify_all()
        self._hosts.drop(share.host, why)
        self._look_at = 0.0  # for another host, if there is work for it
        return self._give_up(hopeless, " ".join(str(why).split()) or type(why).__name__)

    def _join(self, host: HostHandle) -> None:
        """Add a host. Called from any thread."""
        share: _HostShare[C, P] = _HostShare(host, max(1, self._ahead * host.weight))
        with self._changed:
            if self._stopped or id(host) in self._known:
                return
            self._known[id(host)] = host
            self._shares.append(share)
            self._give_again()
            self._changed.notify_all()
        self._ask(share)

    def _ask(self, share: _HostShare[C, P]) -> None:
        share.host.take(lambda taken: self._events.put((share, taken)))

    def _give_again(self) -> None:
        """Give items of lost hosts to those with the least load, and suspects to idle ones."""
        if not (self._retry or self._suspects):
            return
        free = [share for share in self._shares if not share.reserved]
        while self._retry and free:
            self._assign(min(free, key=lambda one: one.load), [self._retry.popleft()])
        for share in free:
            if self._suspects and not share.held:
                self._assign(share, self._next_suspects())
                share.suspected = True
        self._send_all()

    def _next_suspects(self) -> list[Item[C, P]]:
        """Take one that needs a host alone, or a group: as many as there will be groups."""
        is_last = self._losses[self._suspects[0].tag] > SHARED
        count = 1 if is_last else math.isqrt(len(self._suspects))
        return [self._suspects.popleft() for _ in range(count)]

    def _choose(self, item: Item[C, P]) -> tuple[_HostShare[C, P], int] | None:  # noqa: ARG002
        """Return the host with the least load of those that have room."""
        free = [share for share in self._shares if share.room > 0 and not share.reserved]
        if free:
            share = min(free, key=lambda one: one.load)
            return share, share.room
        for share in self._shares:
            share.limited = True
        return None

    def _next_size(self) -> int:
        most = max((share.room or share.target for share in self._shares), default=0)
        # Not all of it at once, so that few items are spread over all hosts.
        return max(1, min(BATCH, most // 2))

    def _assign(self, share: _HostShare[C, P], items: list[Item[C, P]]) -> None:
        super()._assign(share, items)
        share.suspected = False
        share.host.sent += len(items)

    def _send(self, share: _HostShare[C, P]) -> None:
        """Send what a host was given. After the last items and after suspects, also their end."""
        messages: list[ToHost] = []
        if share.unsent:
            if not share.started:
                messages.append(StageStart(self._stage))
                share.started = True
            messages.append(share.host.contexts.pack(share.unsent))
            share.unsent = []
        if (self._fed or share.suspected) and share.started:
            messages.append(StageEnd())
            share.started = False  # items of another host that follow are a stage of their own
        if messages:
            share.host.put(messages)
