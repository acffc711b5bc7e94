"""Run programs as WebAssembly, one after the other, in a process that can be killed any time.

It receives requests and replies with what the programs' verdicts are made from (``exchange.py``).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import resource
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import wasmtime
from wasmtime import component

from assay.sandbox.inside.judging import judge, plain, wire
from assay.sandbox.inside.judging.messages import TEXTS, Result, Task, read_result
from assay.sandbox.wasm.component import open_engine
from assay.sandbox.wasm.exchange import (
    TICK_S,
    EpochClock,
    GuestLimits,
    GuestReport,
    GuestRequest,
    How,
    Watchdog,
    read_request,
)

MIB = 1 << 20
TESTS_MB = 1024  # memory of the instance with the tests
ROOM_MB = 1024  # of this process without its instances: answers are copied here
TESTS_CPU_S = 60.0  # of the tests' own work for one program
PIECE_S = 0.02  # of calls, before their answers are heard
AGAIN_S = 0.5  # to find which call of a piece was the long one
LARGEST_ANSWER = 64 << 20
MOST_ITEMS = 2_000_000  # of an answer: each takes up to 100 bytes when it is read
DEEPEST_ANSWER = 2 * plain.DEEPEST + 8  # a value's nesting in plain data, and an answer's own
# Or a string, in which brackets mean nothing. Possessive, so that no text is read twice.
BRACKET = re.compile(r'[][{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
MUCH = 16 << 20  # said by one program: what it leaves in this process ends with the process
ENDS: dict[str, How] = {"interrupt": "cpu", "stack exhausted": "stack", "Exited with": "exit"}


@dataclass(frozen=True, slots=True)
class InstanceEnd:
    """The end of an instance before it answered."""

    how: How
    detail: str


class InstanceEndedError(Exception):
    """An instance ended before it answered.

    Keep only its ``end``: an error refers to frames, and these to the instance with all its memory.
    """

    def __init__(self, how: How, detail: str) -> None:
        super().__init__(detail)
        self.end = InstanceEnd(how, detail)


class Guest:
    """One instance of the component."""

    def __init__(self, machine: WasmMachine, memory_mb: int) -> None:
        self._clock = machine.clock
        self._store = wasmtime.Store(machine.engine)
        self._store.set_wasi(wasmtime.WasiConfig())  # no folder, no variable, no network
        self._store.set_limits(memory_size=memory_mb * MIB)
        self._store.set_epoch_deadline(1 << 40)
        self._instance = machine.linker.instantiate(self._store, machine.component)
        self._functions: dict[str, component.Func] = {}

    def call(self, name: str, *arguments: str, cpu_s: float) -> str:
        """Call a function. Raise InstanceEndedError unless it returns within the CPU seconds."""
        if name not in self._functions:
            self._functions[name] = self._instance.get_func(self._store, name)
        function = self._functions[name]
        self.allow(cpu_s)
        try:
            result = function(self._store, *arguments)
            function.post_return(self._store)
        except (wasmtime.WasmtimeError, wasmtime.Trap, wasmtime.ExitTrap) as error:
            text = str(error)
            how: How = next((how for words, how in ENDS.items() if words in text), "trap")
            raise InstanceEndedError(
                how, (text.strip().splitlines() or [""])[-1].strip()
            ) from error
        return str(result)

    def close(self) -> None:
        """Free its memory now, even if something still refers to it."""
        self._store.close()

    def allow(self, cpu_s: float) -> None:
        """Set the CPU time allowed from now on, also during a call."""
        self._clock.catch_up()
        self._store.set_epoch_deadline(max(1, round(cpu_s / TICK_S)))


class GuestProgram:
    """An instance with a program, within its limits. ``end`` says how it ended."""

    def __init__(self, machine: WasmMachine, task: Task, limits: GuestLimits) -> None:
        self._machine, self._task, self._limits = machine, task, limits
        self._guest = Guest(machine, limits.memory_mb)
        self._left_s = limits.cpu_s
        self._calls = ""
        self.end: InstanceEnd | None = None
        self._said = 0  # characters

    def close(self) -> None:
        self._guest.close()

    @property
    def is_loud(self) -> bool:
        """Return whether its answers may slow down later programs."""
        return self._said >= MUCH

    def lack(self) -> str:
        """Return what it imports that the guest lacks. Call this before anything else."""
        return self._call("lack", json.dumps(self._task), self._left_s)

    def judged(self) -> str:
        return self._call("judge", json.dumps(self._task), self._left_s)

    def load(self) -> None:
        self._load(0, PIECE_S, self._left_s)

    def answer(self, message: str) -> str:
        """Return its answers while a piece lasts, or none once it has ended."""
        if self.end:
            return ""
        received, calls = (int(message), "") if message[:1].isdigit() else (0, message)
        self._calls = calls or self._calls
        # Only the last call of a piece can be a long one.
        call_s = self._limits.call_cpu_s + PIECE_S if self._limits.call_cpu_s else math.inf
        allowed_s = min(call_s, self._left_s)
        try:
            return self._call("answer", calls, allowed_s)
        except InstanceEndedError as error:
            self.end = error.end
        if self.end.how != "cpu":
            return ""
        if allowed_s == call_s:
            native_s = self._limits.call_cpu_s / self._limits.slower
            self.end = InstanceEnd("call", f"used {native_s:g} s of CPU time in one call")
        # Tests as code stop at the first failure: there nothing more is counted.
        return self._again(received) if self._task.abridged else ""

    def _again(self, received: int) -> str:
        """Return the answers of the interrupted piece, from a new instance, call by call."""
        self._guest.close()
        self._guest = Guest(self._machine, self._limits.memory_mb)
        answers: list[str] = []
        with contextlib.suppress(InstanceEndedError):
            self._load(received, 0.0, AGAIN_S)
            until = self._machine.clock.now_s() + AGAIN_S
            calls = self._calls
            while answers[-1:] != ["[]"] and (left_s := until - self._machine.clock.now_s()) > 0:
                answers.append(self._call("answer", calls, left_s))
                calls = ""
        inner = [answer[1:-1] for answer in answers if answer != "[]"]
        text = f"[{','.join(inner)}]" if inner else ""
        return text if len(text) <= LARGEST_ANSWER else ""

    def _load(self, skip: int, piece_s: float, cpu_s: float) -> None:
        """Make it ready for calls. It skips the first ones and answers in pieces."""
        self._call("load", json.dumps([self._task, skip, piece_s]), cpu_s)

    def _call(self, name: str, argument: str, cpu_s: float) -> str:
        started = self._machine.clock.now_s()
        try:
            text = self._guest.call(name, argument, cpu_s=cpu_s)
            self._said += len(text)
            if len(text) > LARGEST_ANSWER or _items(text) > MOST_ITEMS or _is_too_deep(text):
                raise InstanceEndedError(
                    "answer", "returned a value that is too large or nested too deeply"
                )
        except MemoryError as error:
            self._said += MUCH
            raise InstanceEndedError("answer", "returned a value that is too large") from error
        finally:
            self._left_s -= self._machine.clock.now_s() - started
        return text


class WasmMachine:
    """The component, and what its instances have in common."""

    def __init__(self, path: str) -> None:
        self.engine = open_engine()
        self.component = component.Component.deserialize_file(self.engine, path)
        self.linker = component.Linker(self.engine)
        self.linker.add_wasip2()
        self._answers: Callable[[str], str] | None = None  # while tests wait for a program
        with self.linker.root() as root:
            root.add_func("call", self._call)
        self.clock = EpochClock(self.engine)
        self.clock.start()
        self._oracle: Guest | None = None

    def judged(self, request: GuestRequest) -> GuestReport:
        """Return a program's report."""
        key = request.key
        _limit_memory(request.limits.memory_mb)
        if key and self._oracle is None:
            self._oracle = Guest(self, TESTS_MB)
        if key and self._oracle and request.tests is not None:  # whatever the program does
            try:
                self._oracle.call("keep", key, request.tests, cpu_s=TESTS_CPU_S)
            except InstanceEndedError as error:
                unfit = Result("unfit", detail=f"the tests ended: {error}")
                return self._forget(GuestReport(unfit))
        with closing(GuestProgram(self, request.task, request.limits)) as program:
            report = self._run(key, request.seed, program)
            return self._forget(report) if program.is_loud else report

    def _run(self, key: str, seed: str, program: GuestProgram) -> GuestReport:
        try:
            if lack := program.lack():
                return GuestReport(Result("unsupported", detail=lack))
            if not key:
                return _parse_report(program.judged())
            program.load()
        except InstanceEndedError as error:
            return _ended(None, error.end)
        return self._run_tests(key, seed, program)

    def _run_tests(self, key: str, seed: str, program: GuestProgram) -> GuestReport:
        assert self._oracle is not None
        oracle = self._oracle
        left_s, resumed = TESTS_CPU_S, self.clock.now_s()

        def answer(message: str) -> str:
            """Answer a call. The program's CPU time does not count as the tests'."""
            nonlocal left_s, resumed
            left_s -= self.clock.now_s() - resumed
            try:
                return program.answer(message)
            finally:
                resumed = self.clock.now_s()
                oracle.allow(left_s)

        self._answers = answer
        try:
            result = read_result(json.loads(oracle.call("trial", key, seed, cpu_s=left_s)))
        except InstanceEndedError as error:
            if program.end is not None:
                return self._forget(_ended(None, program.end))
            if error.end.how == "cpu":
                return self._forget(GuestReport(ended="busy tests"))
            return self._forget(GuestReport(lost=f"the tests ended: {error}"))
        finally:
            self._answers = None
        if result.status == "unsupported":
            return GuestReport(result)
        return _ended(result, program.end)

    def _forget(self, report: GuestReport) -> GuestReport:
        """Close the tests' instance, which has ended or may be damaged, and return the report."""
        if self._oracle is not None:
            self._oracle.close()
        self._oracle = None
        return report._replace(forgotten=True)

    def _call(self, _store: Any, message: str) -> str:
        """Answer a call from an instance. While a program runs, its own calls get an empty text."""
        answers, self._answers = self._answers, None
        try:
            return answers(message) if answers else ""
        finally:
            self._answers = answers


def _ended(result: Result | None, end: InstanceEnd | None) -> GuestReport:
    if end is None:
        return GuestReport(result)
    return GuestReport(result, end.how, end.detail)


def _parse_report(text: str) -> GuestReport:
    """Return the report of a program that may have written all of it itself.

    It can claim that it passed, which is what ``shared`` means. It cannot leave the score or say
    much.
    """
    with contextlib.suppress(ValueError, RecursionError, MemoryError):
        texts = json.loads(text)
        if isinstance(texts, list) and len(texts) == TEXTS:
            if tuple(texts) == judge.PASSED[:TEXTS]:
                return GuestReport(judge.PASSED)
            if texts[0] == "fail":
                return GuestReport(judge.fail(*map(str, texts[1:])))
    return GuestReport(ended="exit")


def _items(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _is_too_deep(text: str) -> bool:
    """Return whether parsing this JSON would take more stack than the tests' instance has."""
    if _items(text) <= DEEPEST_ANSWER:
        return False
    depth = 0
    for match in BRACKET.finditer(text):
        bracket = match[0]
        depth += (bracket in "[{") - (bracket in "]}")
        if depth > DEEPEST_ANSWER:
            return True
    return False


def _limit_memory(program_mb: int) -> None:
    """Limit the memory of this process without its instances, whatever size answers have."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = (program_mb + TESTS_MB + ROOM_MB) * MIB
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def main() -> None:
    replies = os.dup(1)
    os.dup2(2, 1)
    machine = WasmMachine(sys.argv[1])
    if sys.argv[2:] == ["about"]:
        wire.write(replies, Guest(machine, 512).call("about", cpu_s=60).encode())
        return
    watchdog = Watchdog(replies, machine.clock)
    watchdog.start()
    wire.send(replies, GuestReport())  # it is ready
    with contextlib.suppress(EOFError):
        while True:
            request = read_request(wire.receive(0))
            watchdog.watch(request.limits.wall_s)
            watchdog.done(machine.judged(request))


if __name__ == "__main__":
    main()
