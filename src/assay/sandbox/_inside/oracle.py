"""The process that knows the answers: it runs the tests and calls the program through a channel.

It is isolated like the programs, apart from them, and judges one after the other. What it hears
from a program is plain data; whatever else arrives counts against the program.
"""

from __future__ import annotations

import _socket  # sockets, without the many modules around them
import builtins
import contextlib
import json
import math
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NoReturn

from . import foresee, judge, wire
from .latest import Latest
from .place import Place
from .plain import decode, encode, has_opaque

CPU_S = 20.0  # of the tests' own work for one program
FAILED_CPU_S = 1.0  # of a program that has failed, to count what else it gets right
LARGEST_ANSWER = 64 << 20
SHORT = 200


class EndedError(Exception):
    """The program's process is gone, or says what no honest one says."""


class StopError(BaseException):
    """Ends the tests, whatever they catch: ``Calls.stopped`` is the result."""


class TooSlowError(BaseException):
    """What the program answered keeps the tests themselves busy."""


Answer = tuple[Any, dict[str, str] | None]  # a value, or a failure


class Channel:
    """Calls of one program."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._answers: deque[Any] = deque()
        self._cpu_s, self._most_cpu_s = 0.0, math.inf  # as the program says: it may lie and live

    def send(self, calls: bytes) -> None:
        try:
            wire.send_encoded(self._descriptor, calls)
        except OSError as error:
            raise EndedError from error

    def end_after(self, cpu_s: float) -> None:
        """Hear the program no longer than for so much of its time."""
        self._most_cpu_s = self._cpu_s + cpu_s

    def answer(self) -> Answer:
        """The next one: a value, or how the program failed to give one."""
        while not self._answers:
            try:
                cpu_s, answers = wire.receive(self._descriptor, LARGEST_ANSWER)
                self._cpu_s = float.__pos__(cpu_s)
                self._answers.extend(answers)
            except (OSError, EOFError, ValueError, TypeError, RecursionError) as error:
                raise EndedError from error
            if self._cpu_s > self._most_cpu_s:
                raise EndedError
        answer = self._answers.popleft()
        try:
            if type(answer) is list:
                (data,) = answer
                return decode(data), None
            return None, {name: str(answer[name]) for name in ("raised", "reason", "detail")}
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise EndedError from error


class CodeTests:
    """Tests as code, in which the program's function is a name that can be called."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._text, self._name = body["code"], body["entry_point"]
        self._preamble = judge.compiled(body["preamble"], judge.PREAMBLE)
        self._code = judge.compiled(body["code"], judge.TESTS)
        # One message takes all calls of most tests to the program.
        self._foreseen, made_anew = foresee.calls(body["code"], self._name)
        self._requests = wire.dump_code(made_anew)

    def run(self, channel: Channel) -> dict[str, Any]:
        calls = Calls(self._name, channel, self._foreseen)
        namespace = judge.prepared(self._preamble)
        namespace[self._name] = calls
        try:
            if self._foreseen:
                channel.send(self._requests)
            exec(self._code, namespace)
        except EndedError:
            return {"ended": True, "failing_test": ""}
        except StopError:
            result: dict[str, Any] = {}
        except Exception as error:
            result = calls.failed(error, judge.failing_test(error, self._text))
        else:
            result = judge.PASSED if calls.made else _unfit(f"no test calls {self._name}")
        return calls.stopped or result


class Calls:
    """The program's function, as the tests see it."""

    def __init__(self, name: str, channel: Channel, foreseen: list[foresee.Call]) -> None:
        self._name, self._channel, self._foreseen = name, channel, deque(foreseen)
        self._call: foresee.Call = ((), {})
        self._value: Any = None
        self._failure: dict[str, str] | None = None
        self._raised: Exception | None = None
        self.made = False
        self.stopped: dict[str, Any] | None = None

    def __call__(self, *positional: Any, **named: Any) -> Any:
        self._call, self.made = (positional, named), True
        try:
            if not self._foreseen:
                if has_opaque(encode([positional, named])):
                    self._stop(_unfit(f"{self._name} is called with more than plain data"))
                self._channel.send(wire.dump_calls([self._call]))
            elif self._foreseen.popleft() != self._call:
                self._stop(_unfit(f"an unforeseen call of {self._name}"))
            self._value, self._failure = self._channel.answer()
        except EndedError:
            self._stop({"ended": True, "failing_test": self._shown()})
        if self._failure is None:
            return self._value
        if not self._failure["raised"]:  # it did not even load
            self._stop(judge.fail(self._failure["reason"], self._failure["detail"]))
        self._raised = _error(self._failure)
        raise self._raised

    def failed(self, error: Exception, failing_test: str) -> dict[str, str]:
        """What the tests said of the last call."""
        if error is self._raised and self._failure:
            return judge.fail(self._failure["reason"], self._failure["detail"], failing_test)
        told = judge.describe(error)
        if self.made and self._failure is None:
            told = f"{told}: {self._shown()} gave {_shown(self._value)}"
        return judge.fail(judge.reason(error), told, failing_test)

    def _stop(self, result: dict[str, Any]) -> NoReturn:
        self.stopped = self.stopped or result
        raise StopError

    def _shown(self) -> str:
        return _shown_call(self._name, *self._call)


class CaseTests:
    """Tests as data; the code of the tests says what matches."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._name = body["entry_point"]
        inputs, expected = body["inputs"], body["expected"]
        self._inputs = {group: list(map(decode, calls)) for group, calls in inputs.items()}
        self._expected = {group: list(map(decode, values)) for group, values in expected.items()}
        self._requests = {
            group: wire.dump_calls([(arguments, {}) for arguments in calls])
            for group, calls in self._inputs.items()
        }
        namespace = judge.prepared(judge.compiled(body["preamble"], judge.PREAMBLE))
        exec(judge.compiled(body["code"], judge.TESTS), namespace)
        self._matcher: Any = namespace["matcher"]

    def run(self, channel: Channel) -> dict[str, Any]:
        if not self._expected:
            return self._outputs(channel)
        groups = {group: [0, len(calls)] for group, calls in self._inputs.items()}
        verdict = judge.PASSED
        arguments: list[Any] = []
        try:
            for group, calls in self._inputs.items():
                channel.send(self._requests[group])
                matches = self._matcher()
                for arguments, expected in zip(calls, self._expected[group], strict=True):
                    got, failure = channel.answer()
                    if failure is None and _right(matches, arguments, expected, got):
                        groups[group][0] += 1
                    elif verdict is judge.PASSED:
                        verdict = self._wrong(arguments, expected, got, failure)
                        channel.end_after(FAILED_CPU_S)
                    if failure and failure["reason"] == "timeout":
                        return {**verdict, "groups": groups}
        except EndedError:
            if verdict is judge.PASSED:
                shown = _shown_call(self._name, arguments, {})
                return {"ended": True, "failing_test": shown, "groups": groups}
        return {**verdict, "groups": groups}

    def _outputs(self, channel: Channel) -> dict[str, Any]:
        """What the program returns for each input, encoded."""
        found: dict[str, list[Any]] = {}
        slowest_s = 0.0
        try:
            for group, calls in self._inputs.items():
                found[group] = []
                for arguments in calls:  # one by one, to see how long each takes
                    started = time.monotonic()
                    channel.send(wire.dump_calls([(arguments, {})]))
                    got, failure = channel.answer()
                    slowest_s = max(slowest_s, time.monotonic() - started)
                    if failure:
                        return self._wrong(arguments, None, got, failure)
                    found[group].append(encode(got))
        except EndedError:
            return {"ended": True, "failing_test": ""}
        return {**judge.PASSED, "outputs": found, "slowest_s": slowest_s}

    def _wrong(
        self, arguments: list[Any], expected: Any, got: Any, failure: dict[str, str] | None
    ) -> dict[str, str]:
        call = _shown_call(self._name, arguments, {})
        if failure is None:
            told = f"expected {_shown(expected)}, got {_shown(got)}"
            return judge.fail("wrong-answer", told, call)
        return judge.fail(failure["reason"], failure["detail"], call if failure["raised"] else "")


class UnfitTests:
    """Tests that cannot be run at all."""

    def __init__(self, error: Exception) -> None:
        self._error = f"the benchmark's own tests fail: {type(error).__name__}: {error}"

    def run(self, channel: Channel) -> dict[str, Any]:  # noqa: ARG002 - nobody is called
        return {"sandbox_error": self._error}


class Oracle:
    """Judges with the tests it is sent, and keeps those of the last problems."""

    def __init__(self, jobs: int, link: int) -> None:
        self._jobs = jobs
        self._link = _socket.socket(fileno=link)
        self._kept: Latest[str, CodeTests | CaseTests | UnfitTests] = Latest()
        signal.signal(signal.SIGPROF, _too_slow)

    def judge(self, job: dict[str, Any]) -> dict[str, Any]:
        """How the program does that the fork server starts for this job."""
        tests = self._tests(job)
        descriptor = self._channel()
        if descriptor is None:
            return {"ended": True}
        try:
            random.seed(0)  # tests that draw their inputs draw the same for every program
            signal.setitimer(signal.ITIMER_PROF, CPU_S)
            return tests.run(Channel(descriptor))
        except TooSlowError:
            return judge.fail("timeout", "its answers keep the tests busy for too long")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.close(descriptor)  # which tells the fork server that the program can go

    def _tests(self, job: dict[str, Any]) -> CodeTests | CaseTests | UnfitTests:
        if job["body_follows"]:
            encoded = wire.receive_encoded(self._jobs)
            body = json.loads(encoded)
            tests: CodeTests | CaseTests | UnfitTests
            try:
                tests = CaseTests(body) if "inputs" in body else CodeTests(body)
            except Exception as error:
                tests = UnfitTests(error)
            self._kept.add(job["key"], tests, len(encoded))
        return self._kept.items[job["key"]]

    def _channel(self) -> int | None:
        """To the next program, from the fork server; none if it could not be started."""
        data, passed, _, _ = self._link.recvmsg(1, _socket.CMSG_LEN(4))
        if not data:
            raise EOFError
        return int.from_bytes(passed[0][2], sys.byteorder) if passed else None


def start(
    _place: Place, jobs: int, settings: dict[str, Any]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return Oracle(jobs, settings["link"]).judge


def _right(matches: Any, arguments: list[Any], expected: Any, got: Any) -> bool:
    try:
        return bool(matches(arguments, expected, got))
    except Exception:  # what cannot be compared does not match
        return False


def _unfit(why: str) -> dict[str, str]:
    """These tests cannot be run apart from a program, which is no failure of the program."""
    return {"sandbox_error": why}


def _error(failure: dict[str, str]) -> Exception:
    """What the program raised, as far as the tests may want to catch it."""
    kind = getattr(builtins, failure["raised"], None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(TypeError):  # some need more than a message
            return kind(failure["detail"])
    return RuntimeError(failure["detail"])


def _shown_call(name: str, positional: Iterable[Any], named: dict[str, Any]) -> str:
    arguments = [*map(_shown, positional), *(f"{key}={_shown(v)}" for key, v in named.items())]
    return _short(f"{name}({', '.join(arguments)})")


def _shown(value: Any) -> str:
    try:
        return _short(repr(value))
    except Exception:  # an integer too large to print, a nesting too deep
        return f"<{type(value).__name__}>"


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT // 2]} … {text[-SHORT // 2 :]}"


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlowError
