"""A process that runs programs as WebAssembly, one after the other; it can be killed at any time.

It gets {"job": …, "key": …, "tests": … or nothing if it has them, "limits": …} and replies with
what the program's verdict is made of.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import wasmtime
from wasmtime import component

from assay.sandbox import _component
from assay.sandbox._inside import judge, wire

TICK_S = 0.01
MIB = 1 << 20
TESTS_CPU_S = 60.0  # of the tests' own work for one program
ENDS = {"interrupt": "cpu", "stack exhausted": "stack", "Exited with": "exit"}


class Clock(threading.Thread):
    """Lets the engine's epochs pass with the CPU time of the thread that runs programs."""

    def __init__(self, engine: Any) -> None:
        super().__init__(daemon=True)
        self._engine = engine
        self.now_s = _cpu_clock()
        self._ticks = 0

    def run(self) -> None:
        while True:
            time.sleep(TICK_S)
            while self._ticks < self.now_s() / TICK_S:
                self._ticks += 1
                self._engine.increment_epoch()


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
        self._machine = machine
        self.store = wasmtime.Store(machine.engine)
        self.store.set_wasi(wasmtime.WasiConfig())  # no folder, no variable, no network
        self.store.set_limits(memory_size=memory_mb * MIB)
        self.store.set_epoch_deadline(1 << 40)
        self._instance = machine.linker.instantiate(self.store, machine.component)
        self._functions: dict[str, Any] = {}

    def call(self, name: str, *arguments: str, cpu_s: float) -> Any:
        """EndedError if it does not return, within so many CPU seconds."""
        if name not in self._functions:
            self._functions[name] = self._instance.get_func(self.store, name)
        function = self._functions[name]
        self.store.set_epoch_deadline(max(1, round(cpu_s / TICK_S)))
        try:
            result = function(self.store, *arguments)
            function.post_return(self.store)
        except (wasmtime.WasmtimeError, wasmtime.Trap, wasmtime.ExitTrap) as error:
            text = str(error)
            how = next((how for words, how in ENDS.items() if words in text), "trap")
            raise EndedError(how, text.strip().splitlines()[-1].strip()) from error
        return result


class Machine:
    """The component, and what its instances have in common."""

    def __init__(self, path: str) -> None:
        self.engine = _component.engine()
        self.component = component.Component.deserialize_file(self.engine, path)
        self.linker = component.Linker(self.engine)
        self.linker.add_wasip2()
        self._called: Any = None
        with self.linker.root() as root:
            root.add_func("call", self._call)
        self.clock = Clock(self.engine)
        self.clock.start()
        self._oracle: Guest | None = None

    def judged(self, message: dict[str, Any]) -> dict[str, Any]:
        limits, started = message["limits"], self.clock.now_s()
        program = Guest(self, limits["memory_mb"])
        job = json.dumps(message["job"])
        try:
            if not message["key"]:
                return _heard(program.call("judge", job, cpu_s=limits["cpu_s"]))
            program.call("load", job, cpu_s=limits["cpu_s"])
            return self._tried(message, program, limits["cpu_s"] - self.clock.now_s() + started)
        except EndedError as end:
            return {"result": None, "ended": end.how, "detail": str(end)}

    def _tried(self, message: dict[str, Any], program: Guest, cpu_s: float) -> dict[str, Any]:
        end: EndedError | None = None

        def called(calls: str) -> str:
            nonlocal cpu_s, end
            started = self.clock.now_s()
            try:
                return str(program.call("answer", calls, cpu_s=cpu_s))
            except EndedError as error:
                end = error
                return ""
            finally:
                cpu_s -= self.clock.now_s() - started

        if self._oracle is None:
            self._oracle = Guest(self, 4096)
        self._called = called
        try:
            if message["tests"] is not None:
                self._oracle.call("keep", message["key"], message["tests"], cpu_s=TESTS_CPU_S)
            told = json.loads(self._oracle.call("trial", message["key"], cpu_s=TESTS_CPU_S))
        except EndedError as error:
            self._oracle = None
            if error.how == "cpu" and end is None:
                return {"result": None, "ended": "busy tests", "detail": ""}
            return {"sandbox_error": f"the tests ended: {error}", "forgotten": True}
        answer: dict[str, Any] = {"result": told}
        if end is not None:
            answer |= {"ended": end.how, "detail": str(end)}
        return answer

    def _call(self, _store: Any, calls: str) -> str:
        return str(self._called(calls))


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
        self._due: float | None = None
        self._since = self._begun = 0.0

    def watch(self, wall_s: float) -> None:
        with self._lock:
            self._since, self._begun = time.monotonic(), self._clock.now_s()
            self._due = self._since + wall_s

    def done(self, report: dict[str, Any]) -> None:
        with self._lock:
            self._due = None
            wire.send(self._replies, report)

    def run(self) -> None:
        while True:
            time.sleep(0.05)
            with self._lock:
                if self._due is None:
                    continue
                if time.monotonic() > self._due + self._clock.now_s() - self._begun:
                    self._give_up()

    def _give_up(self) -> NoReturn:
        report = {"result": None, "ended": "wall", "detail": ""}
        wall_s, cpu_s = time.monotonic() - self._since, self._clock.now_s() - self._begun
        wire.send(self._replies, {**report, "wall_s": round(wall_s, 4), "cpu_s": round(cpu_s, 4)})
        os._exit(0)


def main() -> None:
    replies = os.dup(1)
    os.dup2(2, 1)
    machine = Machine(sys.argv[1])
    if sys.argv[2:] == ["version"]:
        os.write(replies, Guest(machine, 512).call("version", cpu_s=60).encode())
        return
    watchdog = Watchdog(replies, machine.clock)
    watchdog.start()
    wire.send(replies, {"ready": True})
    with contextlib.suppress(EOFError):
        while True:
            message = wire.receive(0)
            watchdog.watch(message["limits"]["wall_s"])
            started, cpu = time.monotonic(), machine.clock.now_s()
            report = machine.judged(message)
            report["wall_s"] = round(time.monotonic() - started, 4)
            report["cpu_s"] = round(machine.clock.now_s() - cpu, 4)
            watchdog.done(report)


if __name__ == "__main__":
    main()
