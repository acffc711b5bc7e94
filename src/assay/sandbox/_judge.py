"""Runs a program and its tests in this interpreter and says how it went.

Runs inside the sandbox: standard library only. Program and tests share the interpreter, which is
what a verdict's ``integrity: shared`` means.
"""

from __future__ import annotations

import builtins
import sys
import types

PREAMBLE, PROGRAM, TESTS = "<preamble>", "<program>", "<tests>"
DETAIL_LIMIT = 500


def judge(preamble: str, program: str, tests: str) -> dict[str, str]:
    """``status``, ``reason``, ``detail`` and ``failing_test``."""
    # A real module, since dataclasses, pickle and typing look their classes' module up.
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    namespace = module.__dict__
    namespace["__builtins__"] = builtins
    exec(_compiled(preamble, PREAMBLE), namespace)
    try:
        code = _compiled(program, PROGRAM)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _fail("syntax", _describe(error))
    try:
        exec(code, namespace)
        exec(_compiled(tests, TESTS), namespace)
    except MemoryError as error:
        return _fail("memory", _describe(error))
    except SystemExit as error:
        return _fail("exit", f"SystemExit: {error}", _failing_test(error, tests))
    except BaseException as error:
        asserted = isinstance(error, AssertionError) and _frames(error)[-1][0] == TESTS
        reason = "wrong-answer" if asserted else "exception"
        return _fail(reason, _describe(error), _failing_test(error, tests))
    return {"status": "pass", "reason": "passed", "detail": "", "failing_test": ""}


def _compiled(source: str, name: str) -> types.CodeType:
    return compile(source, name, "exec", dont_inherit=True)


def _fail(reason: str, detail: str, failing_test: str = "") -> dict[str, str]:
    return {
        "status": "fail",
        "reason": reason,
        "detail": detail[:DETAIL_LIMIT],
        "failing_test": failing_test[:DETAIL_LIMIT],
    }


def _frames(error: BaseException) -> list[tuple[str, int]]:
    frames, entry = [], error.__traceback__
    while entry is not None:
        frames.append((entry.tb_frame.f_code.co_filename, entry.tb_lineno))
        entry = entry.tb_next
    return frames


def _describe(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, SyntaxError):
        return text
    lines = [line for name, line in _frames(error) if name == PROGRAM]
    return f"{text} (line {lines[-1]} of the program)" if lines else text


def _failing_test(error: BaseException, tests: str) -> str:
    lines = [line for name, line in _frames(error) if name == TESTS]
    return tests.splitlines()[lines[-1] - 1].strip() if lines else ""
