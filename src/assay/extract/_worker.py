"""Run as a worker process: batches of texts in, programs out, one line of JSON per batch.

A batch is a list of requests, and the reply is a list of replies (``_messages.py``). It uses only
the standard library. ``_process.py`` starts it.
"""

from __future__ import annotations

import difflib
import fcntl
import json
import os
import resource
import signal

from assay.extract import Step, alternative, explain_extraction, program
from assay.extract._messages import Change, ExtractionReply, TextRequest, encode_reply
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
            replies.write(json.dumps([encode_reply(reply) for reply in found]).encode() + b"\n")
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


def _extract_within(cpu_s: float, request: TextRequest) -> ExtractionReply:
    """Return the reply to one request. SIGPROF ends the process after ``cpu_s``."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        return _extract(request)
    except Exception as error:  # whatever it is, it is about this text alone
        return ExtractionReply(error=f"{type(error).__name__}: {error}"[:ERROR_LENGTH])
    finally:
        forget()


def _extract(request: TextRequest) -> ExtractionReply:
    text, without = request.text, frozenset(request.without)
    answer = Answer(*request.answer) if request.answer else None
    tests = Tests(request.entry_point, request.tests, request.preamble, answer=answer)
    problem = Problem(
        "", request.prompt, "", tests, only_rule=request.only_rule, suffix=request.suffix
    )
    steps = explain_extraction(text, problem, request.form, without)
    other = alternative(text, steps, problem, without)
    shown = steps if steps and request.explain else ()
    changes = tuple(Change(step.rule, _compare_lines(step)) for step in shown)
    return ExtractionReply(program(text, steps), other, changes)


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
