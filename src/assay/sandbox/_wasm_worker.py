"""A process that runs programs as WebAssembly, one after the other; it can be killed at any time.

It gets {"job": …, "key": …, "tests": … or nothing if it has them, "limits": …} and replies with
what the program's verdict is made of.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wasmtime
from wasmtime import component

from assay.sandbox import _component
from assay.sandbox._inside import judge, wire

TICK_S = 0.01
MIB = 1 << 20
TESTS_CPU_S = 60.0  # of the tests' own work for one program
PIECE_S = 0.02  # of calls, before their answers are heard
AGAIN_S = 0.5  # to find which call of a piece was the long one
LARGEST_ANSWER = 64 << 20
PATIENCE = 4  # times the wall limit, for a program that gets no CPU
STARVED = 0.1  # of the wall limit spent waiting for a CPU
ENDS = {"interrupt": "cpu", "stack exhausted": "stack", "Exited with": "exit"}


class Clock(threading.Thread):
    """Lets the engine's epochs pass with the CPU time of the thread that runs programs."""

    def __init__(self, engine: Any) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self.now_s = _cpu_clock()
        self._thread = threading.get_native_id()
        self._ticks = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        while True:
            time.sleep(TICK_S)
            self.catch_up()

    def catch_up(self) -> None:
        """Let all epochs pass that are due; this thread may have had to wait for a core."""
        with self._lock:
            while self._ticks < self.now_s() / TICK_S:
                self._ticks += 1
                self._engine.increment_epoch()

    def waited_s(self) -> float:
        """That the thread which runs programs was ready to but had no core, where that is told."""
        try:
            fields = Path(f"/proc/self/task/{self._thread}/schedstat").read_text().split()
        except OSError:
            return 0.0
        return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def _cpu_clock() -> Callable[[], float]:
    """Of the calling thread, for others to read; of the process where there is none (macOS)."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(clock)


class EndedError(Exception):
    """An instance ended before it answered."""

    def __init__(self, how: str, detail: str) -> None:
        super().__init__(detail)
        self.how = how


class Guest:
    """One instance of the component."""

    def __init__(self, machine: Machine, memory_mb: int) -> None:
        self._clock = machine.clock
        self._store = wasmtime.Store(machine.engine)
        self._store.set_wasi(wasmtime.WasiConfig())  # no folder, no variable, no network
        self._store.set_limits(memory_size=memory_mb * MIB)
        self._store.set_epoch_deadline(1 << 40)
        self._instance = machine.linker.instantiate(self._store, machine.component)
        self._functions: dict[str, Any] = {}

    def call(self, name: str, *arguments: str, cpu_s: float) -> str:
        """EndedError if it does not return, within so many CPU seconds."""
        if name not in self._functions:
            self._functions[name] = self._instance.get_func(self._store, name)
        function = self._functions[name]
        self.allow(cpu_s)
        try:
            result = function(self._store, *arguments)
            function.post_return(self._store)
        except (wasmtime.WasmtimeError, wasmtime.Trap, wasmtime.ExitTrap) as error:
            text = str(error)
            how = next((how for words, how in ENDS.items() if words in text), "trap")
            raise EndedError(how, text.strip().splitlines()[-1].strip()) from error
        return str(result)

    def allow(self, cpu_s: float) -> None:
        """So much from now on, also in the midst of a call."""
        self._clock.catch_up()
        self._store.set_epoch_deadline(max(1, round(cpu_s / TICK_S)))


class Program:
    """An instance with a program, within the program's limits; ``end`` says how it ended."""

    def __init__(self, machine: Machine, job: dict[str, Any], limits: dict[str, Any]) -> None:
        self._machine, self._job, self._limits = machine, job, limits
        self._guest = Guest(machine, limits["memory_mb"])
        self._left_s = limits["cpu_s"]
        self._calls = ""
        self.end: EndedError | None = None

    def judged(self) -> str:
        return self._call("judge", json.dumps(self._job), self._left_s)

    def load(self) -> None:
        self._call("load", json.dumps({**self._job, "skip": 0, "piece_s": PIECE_S}), self._left_s)

    def answer(self, asked: str) -> str:
        """Its CPU time, and its answers for as long as a piece lasts; none once it has ended."""
        text = "" if self.end else self._answers(asked)
        used_s = self._limits["cpu_s"] - self._left_s
        return f"{used_s / self._limits['slower']} {text}"

    def _answers(self, asked: str) -> str:
        heard, calls = (int(asked), "") if asked[:1].isdigit() else (0, asked)
        self._calls = calls or self._calls
        # Only the last call of a piece can be a long one.
        call_s = self._limits["call_cpu_s"] + PIECE_S if self._limits["call_cpu_s"] else math.inf
        allowed_s = min(call_s, self._left_s)
        try:
            text = self._call("answer", calls, allowed_s)
            if len(text) > LARGEST_ANSWER:
                raise EndedError("exit", "an answer too large to be heard")
        except EndedError as error:
            self.end = error
            if error.how != "cpu":
                return ""
            if allowed_s == call_s:
                native_s = self._limits["call_cpu_s"] / self._limits["slower"]
                self.end = EndedError("call", f"used {native_s:g} s of CPU time in one call")
            # Tests as code stop at the first failure: there nothing more is counted.
            return self._again(heard) if self._job["abridged"] else ""
        return text

    def _again(self, heard: int) -> str:
        """What it answered in the piece that was cut off, from a new instance, call by call."""
        answers: list[str] = []
        with contextlib.suppress(EndedError):
            guest = Guest(self._machine, self._limits["memory_mb"])
            job = json.dumps({**self._job, "skip": heard, "piece_s": 0.0})
            guest.call("load", job, cpu_s=AGAIN_S)
            until = self._machine.clock.now_s() + AGAIN_S
            calls = self._calls
            while answers[-1:] != ["[]"] and (left_s := until - self._machine.clock.now_s()) > 0:
                answers.append(guest.call("answer", calls, cpu_s=left_s))
                calls = ""
        inner = [answer[1:-1] for answer in answers if answer != "[]"]
        return f"[{','.join(inner)}]" if inner else ""

    def _call(self, name: str, argument: str, cpu_s: float) -> str:
        started = self._machine.clock.now_s()
        try:
            return self._guest.call(name, argument, cpu_s=cpu_s)
        finally:
            self._left_s -= self._machine.clock.now_s() - started


class Machine:
    """The component, and what its instances have in common."""

    def __init__(self, path: str) -> None:
        self.engine = _component.engine()
        self.component = component.Component.deserialize_file(self.engine, path)
        self.linker = component.Linker(self.engine)
        self.linker.add_wasip2()
        self._answers: Callable[[str], str] | None = None  # while tests wait for a program
        with self.linker.root() as root:
            root.add_func("call", self._call)
        self.clock = Clock(self.engine)
        self.clock.start()
        self._oracle: Guest | None = None

    def judged(self, message: dict[str, Any]) -> dict[str, Any]:
        key = message["key"]
        if key and self._oracle is None:
            self._oracle = Guest(self, 4096)
        if key and self._oracle and message["tests"] is not None:  # whatever the program does
            try:
                self._oracle.call("keep", key, message["tests"], cpu_s=TESTS_CPU_S)
            except EndedError as error:
                return self._forgotten({"sandbox_error": f"the tests ended: {error}"})
        program = Program(self, message["job"], message["limits"])
        try:
            if not key:
                return _heard(program.judged())
            program.load()
        except EndedError as end:
            return _ended(None, end)
        assert self._oracle is not None
        return self._tried(key, program, self._oracle)

    def _tried(self, key: str, program: Program, oracle: Guest) -> dict[str, Any]:
        left_s, resumed = TESTS_CPU_S, self.clock.now_s()

        def answer(asked: str) -> str:
            """What the program uses is not the tests'."""
            nonlocal left_s, resumed
            left_s -= self.clock.now_s() - resumed
            try:
                return program.answer(asked)
            finally:
                resumed = self.clock.now_s()
                oracle.allow(left_s)

        self._answers = answer
        try:
            told = json.loads(oracle.call("trial", key, cpu_s=left_s))
        except EndedError as error:
            if program.end is not None:
                return self._forgotten(_ended(None, program.end))
            if error.how == "cpu":
                return self._forgotten({"result": None, "ended": "busy tests", "detail": ""})
            return self._forgotten({"sandbox_error": f"the tests ended: {error}"})
        finally:
            self._answers = None
        return _ended(told, program.end)

    def _forgotten(self, report: dict[str, Any]) -> dict[str, Any]:
        """After the instance with all tests has ended."""
        self._oracle = None
        return {**report, "forgotten": True}

    def _call(self, _store: Any, asked: str) -> str:
        """Of any instance: a program that calls it hears nothing."""
        answers, self._answers = self._answers, None
        try:
            return answers(asked) if answers else ""
        finally:
            self._answers = answers


def _ended(told: dict[str, Any] | None, end: EndedError | None) -> dict[str, Any]:
    if end is None:
        return {"result": told}
    return {"result": told, "ended": end.how, "detail": str(end)}


def _heard(text: str) -> dict[str, Any]:
    """A program may have written all of it."""
    with contextlib.suppress(ValueError, RecursionError):
        told = json.loads(text)
        if isinstance(told, dict) and told.keys() == judge.PASSED.keys():
            return {"result": {name: str(value) for name, value in told.items()}}
    return {"result": None, "ended": "exit", "detail": ""}


class Watchdog(threading.Thread):
    """Ends the process with a last word when a program only waits: epochs do not pass then."""

    def __init__(self, replies: int, clock: Clock) -> None:
        super().__init__(daemon=True)
        self._replies, self._clock = replies, clock
        self._lock = threading.Lock()
        self._wall_s: float | None = None
        self._since = self._cpu = self._waited = 0.0

    def watch(self, wall_s: float) -> None:
        with self._lock:
            self._wall_s, self._since = wall_s, time.monotonic()
            self._cpu, self._waited = self._clock.now_s(), self._clock.waited_s()

    def done(self, report: dict[str, Any]) -> None:
        with self._lock:
            self._wall_s = None
            wire.send(self._replies, {**report, **self._used()})

    def run(self) -> None:
        while True:
            time.sleep(0.05)
            with self._lock:
                if self._wall_s is not None:
                    self._look(self._wall_s)

    def _used(self) -> dict[str, float]:
        wall_s, cpu_s = time.monotonic() - self._since, self._clock.now_s() - self._cpu
        return {"wall_s": round(wall_s, 4), "cpu_s": round(cpu_s, 4)}

    def _look(self, wall_s: float) -> None:
        """Neither work counts here nor, within reason, time without a core."""
        used = self._used()
        idle_s = used["wall_s"] - used["cpu_s"]
        if idle_s <= wall_s:
            return
        waited_s = self._clock.waited_s() - self._waited
        if idle_s - waited_s > wall_s or idle_s > PATIENCE * wall_s:
            starved = waited_s > STARVED * wall_s
            report = {"result": None, "ended": "wall", "detail": "", "starved": starved}
            wire.send(self._replies, {**report, **used})
            os._exit(0)


def main() -> None:
    replies = os.dup(1)
    os.dup2(2, 1)
    machine = Machine(sys.argv[1])
    if sys.argv[2:] == ["about"]:
        wire.write(replies, Guest(machine, 512).call("about", cpu_s=60).encode())
        return
    watchdog = Watchdog(replies, machine.clock)
    watchdog.start()
    wire.send(replies, {"ready": True})
    with contextlib.suppress(EOFError):
        while True:
            message = wire.receive(0)
            watchdog.watch(message["limits"]["wall_s"])
            watchdog.done(machine.judged(message))


if __name__ == "__main__":
    main()
