"""Hosts as Ray actors, one for every place that should have one."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.cluster.connection import LostHostError, Node, summarize, unwrap
from assay.cluster.dispatch import ATTEMPTS, HostHandle
from assay.cluster.host_messages import ToHost, encode
from assay.data.printable import quantity
from assay.errors import AssayError, RunError
from assay.work import run_in_background

MOST_FAILURES = ATTEMPTS + 1  # of a place in a row: more than one item can cause
HELD = 256 << 20  # bytes of large contexts that stay in the object store for other hosts
CALLS_AT_A_TIME = 8  # that an actor serves, in threads
LINGER_S, LINGER_PER_HOST_S = 0.02, 0.001
CLOSE_S = 5.0
LATE_S = 30.0  # until a host that has not started is reported
WAIT_S, WAIT_PER_HOST_S = 1.0, 0.02


class Objects:
    """Large contexts in Ray's object store, each once for all hosts."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._held: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()  # with their sizes
        self._size = 0
        self._lock = threading.Lock()

    def put(self, content: bytes) -> Any:
        """Return a reference. Ray keeps the content at least until a call with it has ended."""
        key = hashlib.blake2b(content, digest_size=16).digest()
        with self._lock:
            if key not in self._held:
                self._held[key] = self._ray.put(content), len(content)
                self._size += len(content)
            self._held.move_to_end(key)
            reference, _ = self._held[key]
            while self._size > HELD and len(self._held) > 1:
                _, (_, size) = self._held.popitem(last=False)
                self._size -= size
        return reference


class RayHost(HostHandle):
    """A host that is an actor."""

    def __init__(self, actor: Any, name: str, weight: int, objects: Objects, count: int) -> None:
        super().__init__(name, weight)
        self.actor = actor
        self._objects = objects
        # So that the driver gets a bounded number of answers per second from all hosts together.
        self._linger_s = max(LINGER_S, LINGER_PER_HOST_S * count)
        self._wait_s = max(WAIT_S, WAIT_PER_HOST_S * count)
        self._number = 0
        self._lock = threading.Lock()
        self._done: Callable[[bytes | BaseException], None] = lambda _: None
        self._asking = False
        self._lost: LostHostError | None = None

    def put(self, messages: list[ToHost]) -> None:
        content, large = encode(messages)
        references = [self._objects.put(one) for one in large]
        reference = self.actor.put.remote(self._number, content, *references)
        reference.future().add_done_callback(self._was_put)
        self._number += 1

    def take(self, done: Callable[[bytes | BaseException], None]) -> None:
        with self._lock:
            self._done, lost = done, self._lost
            if self._asking and lost is None:
                return
            self._asking = True
        if lost is not None:
            done(lost)
            return
        reference = self.actor.take.remote(self._linger_s, self._wait_s)
        reference.future().add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        """Pass the answer on. Called by a thread of Ray."""
        found: bytes | BaseException
        try:
            found = future.result()
        except BaseException as error:
            found = LostHostError(summarize(error))
        with self._lock:
            self._asking = False
            done = self._done
        done(found)

    def _was_put(self, future: Any) -> None:
        """Give the host up if a message was lost: it waits for that one and takes no others.

        Called by a thread of Ray.
        """
        if (error := future.exception()) is not None:
            with self._lock:
                lost = self._lost = LostHostError(summarize(error))
                done = self._done
            done(lost)


class HostPlace(NamedTuple):
    """A part of a node that should have a host."""

    node: Node
    number: int = 0

    @property
    def key(self) -> tuple[str, int]:
        return self.node.id, self.number


@dataclass(slots=True)
class _Post:
    """The actor of a place."""

    place: HostPlace
    actor: Any = None
    host: RayHost | None = None
    opening: bool = False
    since: float = 0.0  # when the actor was requested
    failures: int = 0


@dataclass(frozen=True, slots=True)
class ActorRole:
    """The way to start an actor for a place, and to make it a host."""

    start: Callable[[HostPlace], Any]  # returns the actor
    open: Callable[[Any], Any]  # returns the reference of the call
    accept: Callable[
        [HostPlace, Any], int
    ]  # returns the weight; raises an error to refuse the node
    places: Callable[[], Sequence[HostPlace]]
    close: Callable[[Any], Any]  # returns the reference of the last call, before it is killed


class RayHosts:
    """One actor for every place of the nodes that are alive."""

    def __init__(
        self, ray: Any, role: ActorRole, objects: Objects, note: Callable[[str], None]
    ) -> None:
        self._ray, self._role, self._objects, self._note = ray, role, objects, note
        self._error: AssayError = RunError("cluster: no node has CPUs for assay.")
        self._posts: dict[tuple[str, int], _Post] = {}
        self._changed = threading.Condition(threading.RLock())
        self._on_ready: Callable[[HostHandle], None] = lambda _: None
        self._complete = False  # all nodes could be used
        self._closed = self._is_late = False
        self._news: queue.SimpleQueue[tuple[_Post, Any, Any, int] | None] = queue.SimpleQueue()
        run_in_background(self._listen)

    def start_missing(self, on_ready: Callable[[HostHandle], None]) -> bool:
        """Start missing actors. See ``Hosts``."""
        if self._closed:
            return False
        places = {place.key: place for place in self._role.places()}
        with self._changed:
            self._on_ready = on_ready
            for key in [key for key in self._posts if key not in places]:
                if self._posts[key].host is None:  # its node is gone
                    self._kill([self._posts.pop(key)])
            for key, place in places.items():
                post = self._posts.setdefault(key, _Post(place))
                if post.actor is None and post.failures < MOST_FAILURES:
                    self._start(post, len(places))
            active = any(post.actor is not None for post in self._posts.values())
            hosts = self.hosts()
            self._note_late_ones()
        for host in hosts:
            on_ready(host)
        return active

    def _note_late_ones(self) -> None:
        """Say once why nothing happens, if actors have not started for long."""
        before = time.monotonic() - LATE_S
        late = sum(post.opening and post.since < before for post in self._posts.values())
        if late and not self._is_late:
            self._is_late = True
            self._note(
                f"cluster: {quantity(late, 'host')} not ready after {LATE_S:.0f} s. Ray may wait "
                "for free CPUs or GPUs (see `ray status`), or model files are being copied"
            )

    def drop(self, host: HostHandle, why: BaseException) -> None:
        with self._changed:
            for post in self._posts.values():
                if post.host is host:
                    self._error = _explain(why)
                    self._note(
                        f"cluster: lost {host.name} ({why}); its work in progress is repeated"
                    )
                    post.failures = 1 if host.consumed else post.failures + 1
                    self._kill([post])

    def explain(self) -> AssayError:
        return self._error

    def hosts(self) -> list[RayHost]:
        with self._changed:
            return [post.host for post in self._posts.values() if post.host]

    def wait(self, timeout_s: float) -> list[RayHost]:
        """Return the hosts once every actor is open.

        The first time, raise the error of a node that cannot have one. Later such a node is left
        out.
        """
        self.start_missing(lambda _: None)
        with self._changed:
            self._changed.wait_for(
                lambda: not any(post.opening for post in self._posts.values()), timeout_s
            )
            refused = any(post.failures >= MOST_FAILURES for post in self._posts.values())
            hosts = self.hosts()
            if not hosts or (refused and not self._complete):
                raise self._error
            self._complete = True
            return hosts

    def count(self) -> tuple[int, int]:
        """Return how many places have an actor, and on how many nodes."""
        with self._changed:
            used = [post.place for post in self._posts.values() if post.actor is not None]
            return len(used), len({place.node.id for place in used})

    def close(self) -> None:
        """End all actors, and start no others."""
        self._closed = True
        self.reset()
        self._news.put(None)

    def reset(self) -> None:
        """End all actors. ``start_missing`` starts others."""
        with self._changed:
            posts, self._posts = list(self._posts.values()), {}
            self._kill(posts)

    def _start(self, post: _Post, count: int) -> None:
        actor = post.actor = self._role.start(post.place)
        post.opening, post.since = True, time.monotonic()
        # Called by the thread that serves all other calls too, so it must never wait for a lock.
        self._role.open(actor).future().add_done_callback(
            lambda future: self._news.put((post, actor, future, count))
        )

    def _listen(self) -> None:
        """Add actors that are open. Runs in a separate thread."""
        while (news := self._news.get()) is not None:
            self._admit(*news)

    def _admit(self, post: _Post, actor: Any, future: Any, count: int) -> None:
        with self._changed:
            if post.actor is not actor:
                return
            post.opening = False
            try:
                weight = self._role.accept(post.place, future.result())
            except BaseException as error:
                found = unwrap(error)
                self._error = _explain(found)
                self._note(f"cluster: no host on node {post.place.node.name} ({found})")
                # What is wrong with the node or the model stays wrong.
                stays = isinstance(found, AssayError) and not isinstance(found, LostHostError)
                post.failures = MOST_FAILURES if stays else post.failures + 1
                self._kill([post])
                self._changed.notify_all()
                return
            post.host = RayHost(actor, post.place.node.name, weight, self._objects, count)
            on_ready, host = self._on_ready, post.host
            self._changed.notify_all()
        on_ready(host)

    def _kill(self, posts: Sequence[_Post]) -> None:
        actors = [post.actor for post in posts if post.actor is not None]
        for post in posts:
            post.actor, post.host, post.opening = None, None, False
        end_actors(self._ray, actors, self._role.close)


def end_actors(ray: Any, actors: Sequence[Any], close: Callable[[Any], Any]) -> None:
    """End actors: let them end what they have started, then kill them."""
    with contextlib.suppress(Exception):  # the whole cluster may be gone
        calls = [close(actor) for actor in actors]
        if calls:
            ray.wait(calls, num_returns=len(calls), timeout=CLOSE_S)
        for actor in actors:
            ray.kill(actor)


def _explain(error: BaseException) -> AssayError:
    if isinstance(error, AssayError) and not isinstance(error, LostHostError):
        return error
    return RunError(
        f"cluster: no node is left ({error}). Completed work is saved; run the same command to "
        "resume."
    )
