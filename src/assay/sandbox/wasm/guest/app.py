"""Judge programs inside the component, with the code that the fork server uses too."""

from __future__ import annotations

import contextlib
import importlib
import json
import random
import sys
from time import monotonic
from typing import Any

import host_names
import lacks
import wit_world
from inside.judging import judge, plain, scripts, trial, wire
from inside.judging.messages import TEXTS, Result, Task, TestBody
from inside.judging.wire import Latest

# There are no files at run time, so what programs may import is in memory from the start.
LEFT_OUT = {
    "antigravity", "ensurepip", "idlelib", "lib2to3", "pdb", "pydoc_data", "test", "this",
    "tkinter", "turtle", "turtledemo", "venv",
}  # fmt: skip
INNER = (
    "email.mime.multipart", "email.mime.text", "email.parser", "html.parser", "http.cookies",
    "importlib.abc", "unittest.mock", "xml.dom.minidom", "xml.etree.ElementTree",
    "xml.sax.saxutils",
)  # fmt: skip
ENCODINGS = [name for name in host_names.MODULES if name.startswith("encodings.")]
for _name in (*sorted(sys.stdlib_module_names - LEFT_OUT), *INNER, *ENCODINGS):
    with contextlib.suppress(BaseException):
        if not _name.startswith("_"):
            importlib.import_module(_name)

absent = lacks.Lacks(host_names.MODULES, host_names.ENCODINGS)
for _names in (host_names.MODULES, host_names.ENCODINGS):
    _names.clear()
judge.explain = absent.explain
# Programs use it as infinity, and expect the value of 64 bits.
sys.maxsize = (1 << 63) - 1


class _State:
    """The state of this instance: a program, or the tests of several."""

    namespace: dict[str, object]
    unloaded: dict[str, str] | None
    task: Task
    skip: int  # of the calls
    piece_s: float  # of answers at a time
    calls: list[Any]


class LackingTests:
    """Tests that import what this guest lacks. They call no program."""

    def __init__(self, lack: str) -> None:
        self._lack = lack

    def run(self, _channel: trial.Channel) -> Result:
        return Result("unsupported", detail=f"{self._lack}, imported by the tests")


state = _State()
kept: Latest[str, scripts.Tests | LackingTests] = Latest()


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    """The component's exports. A new object is created for each call."""

    def about(self) -> str:
        python = f"{sys.implementation.name} {sys.version.split()[0]}"
        names = {module: sorted(found) for module, found in sorted(absent.imports.names.items())}
        return json.dumps(
            {
                "python": python,
                "lacks": {
                    "modules": sorted(absent.imports.modules),
                    "names": {module: found for module, found in names.items() if found},
                    "encodings": sorted(absent.encodings),
                },
            }
        )

    def lack(self, job: str) -> str:
        """Return the first import that the guest lacks. Called before any of the program runs."""
        task = Task(*json.loads(job))
        for name, text in (("preamble", task.preamble), ("tests", task.tests)):
            if found := absent.imports.find(text, trusted=True):
                return f"{found}, imported by the {name}"
        return str(absent.imports.find(task.program, trusted=False))

    def judge(self, job: str) -> str:
        task = Task(*json.loads(job))
        preamble = judge.compiled(task.preamble, judge.PREAMBLE)
        tests = judge.compiled(task.tests, judge.TESTS)
        result = judge.judge(judge.prepared(preamble), task.program, tests, task.tests)
        return _to_json(result[:TEXTS])

    def load(self, job: str) -> None:
        task, state.skip, state.piece_s = json.loads(job)
        state.task = Task(*task)
        preamble = judge.compiled(state.task.preamble, judge.PREAMBLE)
        state.namespace = judge.prepared(preamble)
        adapter = judge.compiled(state.task.tests, judge.TESTS) if state.task.tests else None
        state.unloaded = judge.load(state.namespace, state.task.program, adapter)

    def answer(self, calls: str) -> str:
        task = state.task
        encode = plain.abridged if task.abridged else plain.encode
        if calls:
            state.calls = wire.load_calls(calls.encode("latin-1"))[state.skip :][::-1]
        answers = []
        until = monotonic() + state.piece_s
        while state.calls:
            call = state.calls.pop()
            answers.append(
                state.unloaded
                or judge.call(state.namespace, task.entry_point, *call, encode=encode)
            )
            if monotonic() >= until:
                break
        return _to_json(answers)

    def keep(self, key: str, tests: str) -> None:
        body = TestBody(*json.loads(tests))
        lack = absent.imports.find(body.code, trusted=True)
        kept.add(key, LackingTests(lack) if lack else scripts.prepare_tests(body), len(tests))

    def trial(self, key: str, seed: str) -> str:
        # Random inputs are the same for every program, and no program can predict them.
        random.seed(seed)
        return json.dumps(kept.items[key].run(_Calls()))


def _to_json(message: Any, dumps: Any = json.dumps) -> str:
    """Return the message as JSON, or an empty text if the program broke even that."""
    try:
        return str(dumps(message))
    except BaseException:
        return ""


class _Calls:
    """Calls of the program in the other instance, which answers in pieces."""

    def __init__(self) -> None:
        self._answers: list[Any] = []
        self._heard = self._pending = 0  # answers to the calls that were sent last
        self._ended = (
            False  # reported when the next answer is needed, because that call is to blame
        )

    def send(self, calls: bytes, count: int) -> None:
        self._heard, self._pending = 0, count
        self._hear(calls.decode("latin-1"))

    def answer(self) -> trial.Answer:
        if not self._answers and not self._ended:
            self._hear(str(self._heard))
        if not self._answers:
            raise trial.EndedError
        return trial.checked(self._answers.pop())

    def _hear(self, message: str) -> None:
        """Collect all answers until the program has worked for a while."""
        self._answers = _answers(wit_world.call(message))
        self._heard += len(self._answers)
        self._pending -= len(self._answers)
        if self._pending < 0:
            self._answers = []
        self._ended = not self._answers


def _answers(text: str) -> list[Any]:
    """Return a program's answers, last first, or an empty list if they are malformed."""
    try:
        answers = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        return []
    return answers[::-1] if type(answers) is list else []
