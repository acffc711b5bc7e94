"""Run as a worker process: batches of texts in, programs out, one line of JSON per batch.

It uses only the standard library. ``workers.py`` starts it.
"""

from __future__ import annotations

import difflib
import fcntl
import json
import os
import resource
import signal

from assay.extract import NO_CODE, Step, alternative, explain_extraction, program
from assay.extract._messages import Change, Extraction, TextRequest
from assay.extract.python import forget
from assay.types import Answer, Problem, Tests

ERROR_LENGTH = 200
MOST_LINES = 10_000  # before and after a step; the time to compare more grows with their square


def main(connection: int, lifeline: int, cpu_s: float, memory_mb: int) -> None:
    """Serve batches until the connection ends."""
    for number in (signal.SIGIO, signal.SIGPROF):  # the harness's parent may have ignored them
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _die_with(lifeline)
    _limit(resource.RLIMIT_AS, memory_mb << 20)
    _limit(resource.RLIMIT_CORE, 1)  # to Linux, 0 still lets a program receive the core dump
    with os.fdopen(connection, "rb") as batches, os.fdopen(os.dup(connection), "wb") as replies:
        replies.write(b"ready\n")
        replies.flush()
        for batch in batches:
            found = [_extract_within(cpu_s, TextRequest(*request)) for request in json.loads(batch)]
            signal.setitimer(signal.ITIMER_PROF, 0)
            reply = [extraction.encode() for extraction in found]
            replies.write(json.dumps(reply).encode() + b"\n")
            replies.flush()


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, value))


def _die_with(lifeline: int) -> None:
    """End this process as soon as the other end of a pipe is closed, whatever it is doing.

    The kernel sends SIGIO, whose default action needs no interpreter.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(lifeline, 1)
    except BlockingIOError:
        return
    raise SystemExit  # it was closed before


def _extract_within(cpu_s: float, request: TextRequest) -> Extraction:
    """Return the extraction of one request. SIGPROF ends the process after ``cpu_s``."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        return _extract(request)
    except Exception as error:  # whatever it is, it is about this text alone
        why = f"{type(error).__name__}: {error}"[:ERROR_LENGTH]
        return Extraction(NO_CODE, "extraction", why)
    finally:
        forget()


def _extract(request: TextRequest) -> Extraction:
    text, without = request.text, frozenset(request.without)
    answer = Answer(*request.answer) if request.answer else None
    tests = Tests(request.entry_point, request.tests, request.preamble, answer=answer)
    problem = Problem(
        "", request.prompt, "", tests, only_rule=request.only_rule, suffix=request.suffix
    )
    steps = explain_extraction(text, problem, request.form, without)
    code = program(text, steps)
    if code == NO_CODE:
        missing = f"defines no {request.entry_point}" if request.entry_point else "has no program"
        return Extraction(NO_CODE, "no-code", f"the text {'has no answer' if answer else missing}")
    other = alternative(text, steps, problem, without)
    explained = steps or () if request.explain else ()
    changes = tuple(Change(step.rule, _compare_lines(step)) for step in explained)
    return Extraction(code, changes=changes, alternative=other)


def _compare_lines(step: Step) -> tuple[str, ...]:
    """Return the lines that a step removes (-) and adds (+)."""
    before, after = step.before.splitlines(), step.after.splitlines()
    if len(before) + len(after) > MOST_LINES:
        head = _count_same(before, after)
        tail = _count_same(before[head:][::-1], after[head:][::-1])
        removed, added = (lines[head : len(lines) - tail] for lines in (before, after))
        return tuple([f"-{line}" for line in removed] + [f"+{line}" for line in added])
    changes = difflib.unified_diff(before, after, n=0, lineterm="")
    return tuple(line for line in changes if not line.startswith(("---", "+++", "@@")))


def _count_same(some: list[str], others: list[str]) -> int:
    """Return the number of lines that both begin with."""
    pairs = enumerate(zip(some, others, strict=False))
    differ = (number for number, (one, other) in pairs if one != other)
    return next(differ, min(len(some), len(others)))
