"""Run a program in this interpreter: with its tests, or by calls from elsewhere.

Sharing the interpreter with the tests is what a verdict's ``integrity: shared`` means. Separated
tests load the program once, then call it with plain data.
"""

from __future__ import annotations

import builtins
import errno
import sys
import types
from collections.abc import Callable
from typing import Any

from .messages import Result

PREAMBLE, PROGRAM, TESTS = "<preamble>", "<program>", "<tests>"
DETAIL_LIMIT = 500
PASSED = Result("pass", "passed")
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # raised by compile
# A program that reaches a limit or a barrier of the sandbox gets one of these errors.
BY_ERRNO = {
    errno.ENOMEM: "memory",
    errno.EAGAIN: "processes",
    errno.ENOSPC: "files",
    errno.EFBIG: "files",
    errno.EMFILE: "files",
    errno.EPERM: "forbidden",
    errno.EACCES: "forbidden",
    errno.EROFS: "forbidden",
    errno.ENETUNREACH: "forbidden",
}


def prepared(preamble: types.CodeType) -> dict[str, object]:
    """Return the namespace of a module in which the benchmark's preamble has run."""
    # A real module, because dataclasses, pickle and typing look up the module of a class.
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    namespace = module.__dict__
    namespace["__builtins__"] = builtins
    exec(preamble, namespace)
    return namespace


def judge(namespace: dict[str, object], program: str, tests: types.CodeType, text: str) -> Result:
    """Run a program, then its tests, whose source is ``text``."""
    try:
        code = compiled(program, PROGRAM)
    except NOT_PYTHON as error:
        return fail("syntax", describe(error))
    try:
        exec(code, namespace)
        exec(tests, namespace)
    except BaseException as error:
        return fail(*explain_error(error), failing_test(error, text))
    return PASSED


def load(
    namespace: dict[str, object], program: str, adapter: types.CodeType | None = None
) -> dict[str, str] | None:
    """Load the program, then the adapter. Return what went wrong, if anything did."""
    try:
        code = compiled(program, PROGRAM)
    except NOT_PYTHON as error:
        return {"raised": "", "reason": "syntax", "detail": describe(error)}
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


def call(
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
    reason, detail = explain_error(error)
    return {"raised": type(error).__name__, "reason": reason, "detail": detail}


def compiled(source: str, name: str) -> types.CodeType:
    return compile(source, name, "exec", dont_inherit=True)


def _unexplained(_error: BaseException) -> tuple[str, str] | None:
    return None


# Set if the interpreter itself lacks something: returns reason and detail of such an error.
explain: Callable[[BaseException], tuple[str, str] | None] = _unexplained


def explain_error(error: BaseException) -> tuple[str, str]:
    """Return a verdict's reason and detail."""
    try:
        explained = explain(error)
    except BaseException:  # the program's own attributes: they may do anything
        explained = None
    return explained or (reason(error), describe(error))


def reason(error: BaseException) -> str:
    if isinstance(error, AssertionError) and _frames(error)[-1][0] == TESTS:
        return "wrong-answer"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, SystemExit):
        return "exit"
    if isinstance(error, OSError) and error.errno in BY_ERRNO:
        return BY_ERRNO[error.errno]
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "processes"
    return "exception"


REASONS = {
    "wrong-answer", "exception", "syntax", "timeout", "exit", "memory", "output", "signal",
    *BY_ERRNO.values(),
}  # fmt: skip


def fail(why: str, detail: str, failing_test: str = "", **compared: Any) -> Result:
    """Return a failure. ``compared`` are texts of what the tests called, expected and got."""
    reason = why if why in REASONS else "exception"
    bounded = {name: text and text[:DETAIL_LIMIT] for name, text in compared.items()}
    return Result("fail", reason, detail[:DETAIL_LIMIT], failing_test[:DETAIL_LIMIT], **bounded)


def _frames(error: BaseException) -> list[tuple[str, int]]:
    frames, entry = [], error.__traceback__
    while entry is not None:
        frames.append((entry.tb_frame.f_code.co_filename, entry.tb_lineno))
        entry = entry.tb_next
    return frames


def describe(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
    except BaseException:  # the program's own __str__: it may do anything
        text = type(error).__name__
    if isinstance(error, SyntaxError):
        return text
    lines = [line for name, line in _frames(error) if name == PROGRAM]
    where = f" (line {lines[-1]} of the program)" if lines else ""
    return "; ".join([text + where, *map(str, getattr(error, "__notes__", ()))])


def failing_test(error: BaseException, tests: str) -> str:
    lines = [line for name, line in _frames(error) if name == TESTS]
    return tests.splitlines()[lines[-1] - 1].strip() if lines else ""
