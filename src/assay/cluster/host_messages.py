"""Define messages between the driver and its hosts. Both sides are assay's own code.

They are pickled here rather than by Ray, whose pickler is written in Python and several times as
slow. Nothing that a program or a model wrote is unpickled: it arrives as text.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from assay.errors import (
    AssayError,
    DataError,
    ExtractionError,
    ModelError,
    RunError,
    SandboxError,
    UsageError,
)
from assay.sandbox.stages import Items, StageEnd, StageStart, pickle_as_call
from assay.types import Completion, Decoding, Prompt

LARGE = 1 << 18  # bytes of a context that travels by the object store, once for all hosts
KINDS = (UsageError, DataError, ModelError, ExtractionError, SandboxError, RunError)


class LargeContext(NamedTuple):
    """A stand-in for a context that is passed next to the message."""

    number: int


class Taken(NamedTuple):
    """The answers of a host, and how far it is."""

    answers: list[tuple[int, Any]]
    consumed: int = 0  # items that the work has taken so far
    starved: bool = False  # it has waited for items
    tokens: int = 0  # generated so far, with those of unfinished completions
    loading: bool = False
    failure: AssayError | None = None  # that ends the work


ToHost = StageStart | Items | StageEnd


def encode(messages: list[ToHost]) -> tuple[bytes, list[bytes]]:
    """Return messages as bytes, and separately their large contexts."""
    large: list[bytes] = []

    def set_apart(content: bytes) -> Any:
        if len(content) < LARGE:
            return content
        large.append(content)
        return LargeContext(len(large) - 1)

    plain = [_with_contexts(message, set_apart) for message in messages]
    return pickle.dumps(plain, pickle.HIGHEST_PROTOCOL), large


def decode(content: bytes, large: tuple[bytes, ...]) -> list[ToHost]:
    """Return messages with their contexts."""

    def restore(one: Any) -> bytes:
        return large[one.number] if isinstance(one, LargeContext) else one

    return [_with_contexts(message, restore) for message in pickle.loads(content)]


def _with_contexts(message: ToHost, change: Callable[[Any], Any]) -> ToHost:
    if not isinstance(message, Items):
        return message
    return Items([(number, change(one)) for number, one in message.contexts], message.items)


def make_portable(error: BaseException, where: str = "") -> AssayError:
    """Return an error that can be pickled, with the name of the node."""
    prefix = f"node {where}: " if where else ""
    for kind in KINDS:
        if isinstance(error, kind):
            return kind(f"{prefix}{error}")
    if isinstance(error, AssayError):
        return RunError(f"{prefix}{error}")
    return RunError(f"{prefix}{type(error).__name__}: {error}")


for _type in (Completion, Decoding, Prompt):
    pickle_as_call(_type)
