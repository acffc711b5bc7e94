"""The component's Python: judges programs with the code that the fork server uses too."""

from __future__ import annotations

import contextlib
import importlib
import json
import random
import sys
from typing import Any

import wit_world
from _inside import calling, judge, plain, trial, wire
from _inside.latest import Latest

# There are no files at run time: what programs may import is in memory from the start.
LEFT_OUT = {
    "antigravity", "ensurepip", "idlelib", "lib2to3", "pdb", "pydoc_data", "test", "this",
    "tkinter", "turtle", "turtledemo", "venv",
}  # fmt: skip
for _name in sorted(sys.stdlib_module_names - LEFT_OUT):
    with contextlib.suppress(BaseException):
        if not _name.startswith("_"):
            importlib.import_module(_name)


class _State:
    """Of this instance: a program, or the tests of several."""

    namespace: dict[str, object]
    unloaded: dict[str, str] | None
    job: dict[str, Any]


state = _State()
kept: Latest[str, trial.Tests] = Latest()


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    """What the component exports; made anew for each call."""

    def version(self) -> str:
        return f"{sys.implementation.name} {sys.version.split()[0]}"

    def judge(self, job: str) -> str:
        asked = json.loads(job)
        preamble = judge.compiled(asked["preamble"], judge.PREAMBLE)
        tests = judge.compiled(asked["tests"], judge.TESTS)
        told = judge.judge(judge.prepared(preamble), asked["program"], tests, asked["tests"])
        return _told(told)

    def load(self, job: str) -> None:
        state.job = json.loads(job)
        preamble = judge.compiled(state.job["preamble"], judge.PREAMBLE)
        state.namespace = judge.prepared(preamble)
        state.unloaded = calling.load(state.namespace, state.job["program"])

    def answer(self, calls: str) -> str:
        encode = plain.abridged if state.job["abridged"] else plain.encode
        name = state.job["entry_point"]
        answers = []
        for call in wire.load_calls(calls.encode("latin-1")):
            answers.append(
                state.unloaded or calling.result(state.namespace, name, *call, encode=encode)
            )
        return _told(answers)

    def keep(self, key: str, tests: str) -> None:
        kept.add(key, trial.made(json.loads(tests)), len(tests))

    def trial(self, key: str) -> str:
        random.seed(0)  # tests that draw their inputs draw the same for every program
        return json.dumps(kept.items[key].run(_Calls()))


def _told(message: Any, dumps: Any = json.dumps) -> str:
    """Nothing if the program has made even the telling fail, which is its own failure."""
    try:
        return str(dumps(message))
    except BaseException:
        return ""


class _Calls:
    """The program in the other instance."""

    def __init__(self) -> None:
        self._answers: list[Any] = []

    def send(self, calls: bytes) -> None:
        text = wit_world.call(calls.decode("latin-1"))
        if not text:
            raise trial.EndedError
        try:
            answers = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise trial.EndedError from error
        self._answers = answers[::-1]

    def answer(self) -> trial.Answer:
        if not self._answers:
            raise trial.EndedError
        return trial.checked(self._answers.pop())

    def end_after(self, cpu_s: float) -> None:
        """All calls of a message are made before the first answer is seen."""
