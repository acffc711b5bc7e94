"""Load the program of separated tests once, then call it with plain data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from . import judge


def load(
    namespace: dict[str, object], program: str, adapter: CodeType | None = None
) -> dict[str, str] | None:
    """Load the program, then the adapter. Return what went wrong, if anything did."""
    try:
        code = judge.compiled(program, judge.PROGRAM)
    except judge.NOT_PYTHON as error:
        return {"raised": "", "reason": "syntax", "detail": judge.describe(error)}
    try:
        exec(code, namespace)
        if adapter is not None:
            exec(adapter, namespace)
    except BaseException as error:
        return {**failure_of(error), "raised": ""}  # not by a call
    return None


def flush_output() -> None:
    """Write out what the program has printed so far: its process may end without notice."""
    try:
        sys.stdout.flush()
    except BaseException:  # closed, or an object of the program's own: nothing to show then
        return


def result(
    namespace: dict[str, object],
    entry_point: str,
    positional: Any,
    named: Any,
    encode: Callable[[Any], Any],
) -> Any:
    """Call the function. Return its result in a list, or how it failed."""
    try:
        if entry_point not in namespace:
            raise NameError(f"name {entry_point!r} is not defined")
        function: Any = namespace[entry_point]
        result = function(*positional, **named)
    except BaseException as error:
        return failure_of(error)
    try:
        return [encode(result)]
    except BaseException:  # its own methods fail, or lie about its type
        return [{"opaque": type(result).__name__}]


def failure_of(error: BaseException) -> dict[str, str]:
    reason, detail = judge.explain_error(error)
    return {"raised": type(error).__name__, "reason": reason, "detail": detail}
