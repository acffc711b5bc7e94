"""Control one worker process from the harness: what it is sent, its answers, its failures."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.errors import ExtractionError
from assay.extract import NO_CODE
from assay.extract._messages import Change, ExtractionReply, TextRequest, decode_reply
from assay.types import Answer, Problem, Program, PromptForm

START_S = 60.0
REPLY_BYTES = 1 << 28
PROGRESS_S = 0.01  # CPU time; what is below this is not work
CPU_CLOCK = 2  # of a process, in Linux's numbers of clocks: CPUCLOCK_SCHED
SCRIPT = (
    "import sys; sys.path.append(sys.argv[1]); from assay.extract._worker import main;"
    "main(int(sys.argv[2]), 0, float(sys.argv[3]), int(sys.argv[4]))"
)
# No site packages: to find them takes longer than to import the rules.
OPTIONS = ("-I", "-S", "-B", "-c", SCRIPT, str(Path(__file__).parents[2]))
ENVIRONMENT = {"LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """The resources that extraction may use for one text."""

    cpu_s: float = 10.0
    wall_s: float = 60.0  # ends a process that uses no CPU time for so long
    memory_mb: int = 1024


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """Hold a text to extract a program from."""

    text: str
    problem: Problem
    form: PromptForm
    without: frozenset[str] = frozenset()  # rules to leave out
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """Hold the program in a text, or the reason and detail of the verdict if there is none."""

    program: Program
    reason: str = ""
    detail: str = ""
    changes: tuple[Change, ...] = ()
    alternative: Program | None = None  # to be judged if the program fails


class ExtractorLostError(Exception):
    """A worker ended or gave no answer. ``certain``: only the text can be the cause."""

    def __init__(self, why: str, *, certain: bool = False) -> None:
        super().__init__(why)
        self.certain = certain


class WorkerProcess:
    """Hold a process that is ready for batches. Only ``kill`` may be called from any thread."""

    def __init__(self, limits: ExtractionLimits, interpreter: str = sys.executable) -> None:
        self._limits = limits
        self._connection, theirs = socket.socketpair()
        end, self._lifeline = os.pipe()  # its closing ends the process, however this one ends
        arguments = map(str, (theirs.fileno(), limits.cpu_s, limits.memory_mb))
        try:
            with theirs, os.fdopen(end, "rb") as lifeline:
                self._process = subprocess.Popen(
                    [interpreter, *OPTIONS, *arguments],
                    stdin=lifeline,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=ENVIRONMENT,
                    cwd="/",
                    start_new_session=True,  # Ctrl-C is the harness's to handle
                    pass_fds=[theirs.fileno()],
                )
        except OSError as error:
            self._release()
            raise _cannot_start(error) from error
        try:
            self._receive(START_S)
        except ExtractorLostError as error:
            self.close()
            raise _cannot_start(error) from error

    def extract(self, batch: Sequence[ExtractionRequest]) -> list[Extraction]:
        """Return an extraction per request. Raise ExtractorLostError if the process fails."""
        message = json.dumps([_encode(request) for request in batch]).encode() + b"\n"
        try:
            self._connection.settimeout(self._limits.wall_s)
            self._connection.sendall(message)
        except OSError as error:
            raise self._explain_loss(error) from error
        reply = self._receive(self._limits.wall_s)
        try:
            replies = zip(batch, json.loads(reply), strict=True)
            return [_extraction(decode_reply(found), request.problem) for request, found in replies]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ExtractorLostError(f"the worker process gave a wrong answer: {error}") from error

    def kill(self) -> None:
        """End the process. A thread that waits for it gets a ExtractorLostError."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and free its resources here."""
        self.kill()
        self._release()

    def _release(self) -> None:
        self._connection.close()
        os.close(self._lifeline)

    def _receive(self, wall_s: float) -> bytes:
        """Return the next line of the process."""
        parts, length = [b""], 0
        try:
            self._connection.settimeout(wall_s)
            while not parts[-1].endswith(b"\n"):
                parts.append(self._receive_part())
                length += len(parts[-1])
                if not parts[-1] or length > REPLY_BYTES:
                    raise self._explain_loss(None)
        except OSError as error:
            raise self._explain_loss(error) from error
        return b"".join(parts)

    def _receive_part(self) -> bytes:
        """Return what comes next. On a busy machine, a process that still works has more time.

        It ends itself after its CPU seconds, so this ends too.
        """
        used = self._cpu_s()
        while True:
            try:
                return self._connection.recv(1 << 20)
            except TimeoutError:
                before, used = used, self._cpu_s()
                if used - before < PROGRESS_S:
                    raise

    def _cpu_s(self) -> float:
        with contextlib.suppress(OSError):
            return time.clock_gettime(~self._process.pid << 3 | CPU_CLOCK)
        return 0.0

    def _explain_loss(self, error: OSError | None) -> ExtractorLostError:
        if isinstance(error, TimeoutError):
            return ExtractorLostError(f"no result within {self._limits.wall_s:g} s")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.returncode
        if code == -signal.SIGPROF:
            return ExtractorLostError(
                f"no result within {self._limits.cpu_s:g} s of CPU time", certain=True
            )
        return ExtractorLostError(f"the worker process ended ({_describe_exit(code)})")


def _cannot_start(error: Exception) -> ExtractionError:
    return ExtractionError(
        f"extraction: no worker process can start ({error}). "
        "Check the limits on memory and processes."
    )


def _describe_exit(code: int | None) -> str:
    with contextlib.suppress(ValueError, TypeError):
        return signal.Signals(-code).name  # type: ignore[operator]
    return f"exit code {code}"


def _encode(request: ExtractionRequest) -> TextRequest:
    problem, tests = request.problem, request.problem.tests
    without = tuple(sorted(request.without.union(problem.without_rules)))
    return TextRequest(
        request.text, problem.begun or problem.prompt, tests.entry_point, tests.code,
        tests.preamble, request.form, without, request.explain, _encode_answer(tests.answer),
        problem.only_rule, problem.suffix,
    )  # fmt: skip


def _encode_answer(answer: Answer | None) -> tuple[str, ...]:
    return (answer.kind, answer.function) if answer else ()


def _extraction(reply: ExtractionReply, problem: Problem) -> Extraction:
    if reply.program is None:
        return Extraction(NO_CODE, "extraction", reply.error)
    if reply.program == NO_CODE:
        tests = problem.tests
        missing = f"defines no {tests.entry_point}" if tests.entry_point else "has no program"
        if tests.answer:
            missing = "has no answer"
        return Extraction(NO_CODE, "no-code", f"the text {missing}")
    return Extraction(reply.program, changes=reply.changes, alternative=reply.alternative)
