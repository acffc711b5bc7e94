"""Hand the items of one stage out to workers that may be lost, and take their answers."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from assay.work.pool import PAUSE, run_in_background

LOOK_EVERY_S = 0.2
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
C_in = TypeVar("C_in", contravariant=True)
P_in = TypeVar("P_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)


class Item(NamedTuple, Generic[C, P]):
    """One item of a stage. The stage answers it by its tag."""

    tag: int
    context: C
    payload: P


class Recoverable(Protocol[C_in, P_in, R_out]):
    """A stage whose items may lose the workers that work on them."""

    def give_up(self, context: C_in, payload: P_in, why: str) -> R_out:
        """Return the answer for an item that has lost several workers, or raise an error."""
        ...


@dataclass(slots=True, kw_only=True)
class Share(Generic[C, P]):
    """The items that one worker was given."""

    held: dict[int, Item[C, P]] = field(default_factory=dict)  # without an answer, by tag
    unsent: list[Item[C, P]] = field(default_factory=list)


S = TypeVar("S", bound=Share[Any, Any])


class Dispatch(Generic[C, P, R, S]):
    """The run of one stage. A thread reads the items, which may block; the caller takes answers.

    Items are read only when a worker has room. They stay in its share until it has answered, so
    that a worker that is lost loses none. A subclass chooses a worker for an item, sends, receives,
    and decides what happens to the items of a lost worker. Both threads change shares, always with
    the lock of ``_changed``.
    """

    batch = 1  # items that are sent together, unless there are fewer

    def __init__(self, stage: Recoverable[C, P, R], items: Iterable[tuple[C, P] | None]) -> None:
        self._stage, self._items = stage, items
        self._shares: list[S] = []
        self._losses: Counter[int] = Counter()  # workers that an item has lost, by tag
        self._open = 0  # items without an answer
        self._changed = threading.Condition()
        self._stopped = self._fed = False
        self._failure: BaseException | None = None  # of the items
        self._broken: BaseException | None = None  # of giving them out

    def answers(self) -> Generator[list[R], None, None]:
        """Yield answers in batches. An error of the items is raised after all others are done.

        One of giving them out is raised at once: an item that cannot be sent is never answered.
        """
        self._begin()
        run_in_background(self._feed)
        try:
            while self._broken is None and not self._is_done():
                yield from filter(None, self._receive())
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
        if (error := self._broken or self._failure) is not None:
            raise error

    def _begin(self) -> None:
        """Start workers."""
        raise NotImplementedError

    def _is_done(self) -> bool:
        with self._changed:
            return self._fed and not self._open

    def _receive(self) -> Iterator[list[R]]:
        """Wait for something to happen, and yield the answers that follow from it."""
        raise NotImplementedError

    def _choose(self, item: Item[C, P]) -> tuple[S, int] | None:
        """Return the best worker for an item and its room, or None if none has room."""
        raise NotImplementedError

    def _next_size(self) -> int:
        """Return how many items are read before they are given out."""
        return 1

    def _send(self, share: S) -> None:
        """Send what is unsent, and after the last items also their end."""
        raise NotImplementedError

    def _wake(self) -> None:
        """Make ``_receive`` return: all items have been given out, or none can be any more."""

    def _feed(self) -> None:
        """Give all items out. Runs in a separate thread."""
        try:
            self._give_all()
        except BaseException as error:
            self._broken = error
        self._wake()

    def _give_all(self) -> None:
        # Read without the lock, which the thread that takes answers needs all the time.
        tags, batch, size = itertools.count(), list[Item[C, P]](), 1
        items, more = iter(self._items), True
        while more and size:  # 0: stopped
            item = PAUSE
            try:
                item = next(items)
            except StopIteration:
                more = False
            except BaseException as error:
                self._failure, more = error, False
            if item is not PAUSE:
                batch.append(Item(next(tags), *item))
                if len(batch) < size:
                    continue
            if batch or more:
                size, batch = self._give(batch), []
        with self._changed:
            self._fed = True
            if not self._stopped:
                self._send_all()

    def _give(self, batch: list[Item[C, P]]) -> int:
        """Give items to workers as these have room. Return the size of the next batch; 0: stopped.

        An empty batch is a pause: nothing may wait for more items to be sent with it.
        """
        with self._changed:
            self._open += len(batch)
            if not batch:
                self._send_all()
            while batch and not self._stopped:
                choice = self._choose(batch[0])
                if choice is None:
                    self._send_all()
                    self._changed.wait(LOOK_EVERY_S)
                    continue
                share, room = choice
                self._assign(share, batch[:room])
                batch = batch[room:]
                if len(share.unsent) >= self.batch:
                    self._send(share)
            return 0 if self._stopped else self._next_size()

    def _assign(self, share: S, items: list[Item[C, P]]) -> None:
        share.held.update((item.tag, item) for item in items)
        share.unsent += items

    def _send_all(self) -> None:
        for share in self._shares:
            self._send(share)

    def _take_back(self, share: S) -> Iterator[tuple[Item[C, P], int]]:
        """Yield the items of a lost worker, each with the number of workers that it has lost."""
        items, share.held, share.unsent = list(share.held.values()), {}, []
        for item in items:
            self._losses[item.tag] += 1
            yield item, self._losses[item.tag]

    def _give_up(self, items: Iterable[Item[C, P]], why: str) -> list[R]:
        return [self._stage.give_up(item.context, item.payload, why) for item in items]
