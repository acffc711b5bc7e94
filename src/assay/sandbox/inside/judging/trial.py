"""Run tests that call a program through a channel, wherever the two are."""

from __future__ import annotations

import builtins
import contextlib
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NoReturn, Protocol

from . import foresee, judge, wire
from .messages import Failure, Group, Result, TestBody
from .plain import STEERING, decode, encode, has_opaque

SHORT = 200
NEAR = 20  # characters of a text after its first difference

Answer = tuple[Any, Failure | None]  # a value, or a failure


class EndedError(Exception):
    """The program is gone, or sends what no honest one sends."""


class SteeringError(Exception):
    """An exception of the program that would steer the tests' own control flow.

    A StopIteration ends a ``map`` or ``filter`` of the tests early and without a failure. No test
    can name this class, so none takes it for an expected error.
    """


class StopError(BaseException):
    """The end of the tests, whatever they catch. ``Calls.stopped`` is the result."""


class Channel(Protocol):
    """Calls of one program."""

    def send(self, calls: bytes, count: int) -> None: ...

    def answer(self) -> Answer:
        """Return the next answer: a value, or how the program failed to give one."""
        ...


def checked(answer: Any) -> Answer:
    """Return a program's answer. Raise EndedError if it is malformed."""
    try:
        if type(answer) is list:
            (data,) = answer
            return decode(data), None
        return None, Failure(*(str(answer[name]) for name in Failure._fields))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EndedError from error


class CodeTests:
    """Tests that are code, in which the program's function is a callable name.

    They continue after a failure. A program that is not called again would know that its last
    answer was wrong, and could tell the next sample.
    """

    def __init__(self, body: TestBody) -> None:
        self._text, self._name = body.code, body.entry_point
        self._preamble = judge.compiled(body.preamble, judge.PREAMBLE)
        # For most tests, one message carries all calls to the program.
        self._foreseen = foresee.calls(self._text, self._name)
        if self._foreseen and foresee.has_sets(self._text, self._name):
            self._requests = wire.dump_recipes(foresee.recipes(self._text, self._name))
        else:
            self._requests = wire.dump_calls(list(self._foreseen))
        compiled = judge.compiled if self._foreseen else foresee.compile_unstopped
        self._code = compiled(self._text, judge.TESTS if self._foreseen else self._name)

    def run(self, channel: Channel) -> Result:
        calls = Calls(self._name, channel, self._foreseen)
        failures: list[Result] = []

        def note(error: Exception) -> None:
            if not failures:
                failures.append(calls.failed(error, judge.failing_test(error, self._text)))

        namespace = judge.prepared(self._preamble)
        namespace[self._name] = calls
        namespace.update({foresee.NOTE: note, **foresee.HELPERS})
        try:
            if self._foreseen:
                channel.send(self._requests, len(self._foreseen))
            exec(self._code, namespace)
        except EndedError:
            return Result("ended")
        except StopError:
            pass
        except Exception as error:
            note(error)
        calls.hear_the_rest()
        if failed := failures[0] if failures else calls.stopped:
            return failed
        return judge.PASSED if calls.made else _unfit(f"no test calls {self._name}")


class Calls:
    """The program's function, as the tests see it."""

    def __init__(self, name: str, channel: Channel, foreseen: list[foresee.Call]) -> None:
        self._name, self._channel, self._foreseen = name, channel, deque(foreseen)
        self._call: foresee.Call = ((), {})
        self._value: Any = None
        self._failure: Failure | None = None
        self._raised: Exception | None = None
        self._answered = False
        self.made = False
        self.stopped: Result | None = None

    def __call__(self, *positional: Any, **named: Any) -> Any:
        self._call, self.made = (positional, named), True
        try:
            if not self._foreseen:
                data = encode([positional, named])
                if has_opaque(data):
                    self._stop(self._not_plain())
                self._channel.send(wire.dump_calls([self._call]), 1)
            elif self._foreseen.popleft() != self._call:
                self._stop(_unfit(f"an unforeseen call of {self._name}"))
            self._value, self._failure = self._channel.answer()
        except EndedError:
            self._stop(Result("ended", failing_test=self._shown(), call=self._shown()))
        if self._failure is None:
            self._answered = True
            return self._value
        if not self._failure.raised:  # it did not even load
            self._stop(judge.fail(self._failure.reason, self._failure.detail))
        self._raised = _error(self._failure)
        raise self._raised

    def _not_plain(self) -> Result:
        """Return whose failure it is that a call cannot be sent.

        It is the program's if it has answered before: references show that tests pass plain data.
        """
        why = f"{self._name} is called with more than plain data"
        if self._answered:
            call = self._shown()
            return judge.fail("wrong-answer", f"{why}, made of its answers", call, call=call)
        return _unfit(why)

    def hear_the_rest(self) -> None:
        """Wait for the answers to calls that were sent but are no longer needed."""
        with contextlib.suppress(EndedError):
            for _ in self._foreseen if self.stopped is None else ():
                _, failure = self._channel.answer()
                if failure and failure.reason == "timeout":
                    return

    def failed(self, error: Exception, failing_test: str) -> Result:
        """Return what the tests said about the last call."""
        call = self._shown() if self.made else None
        if self._failure and error is self._raised:
            return judge.fail(self._failure.reason, self._failure.detail, failing_test, call=call)
        reason, detail = judge.explain_error(error)
        actual = _shown(self._value) if self.made and self._failure is None else None
        return judge.fail(reason, detail, failing_test, call=call, actual=actual)

    def _stop(self, result: Result) -> NoReturn:
        self.stopped = self.stopped or result
        raise StopError

    def _shown(self) -> str:
        return _shown_call(self._name, *self._call)


class CaseTests:
    """Tests that are data. The code of the tests decides what matches.

    If it has a function ``read_arguments``, that makes arguments of an input: a few characters can
    stand for a list of millions. A function ``explain`` says why a value is wrong, if that does not
    follow from the expected one.
    """

    def __init__(self, body: TestBody) -> None:
        self._name = body.entry_point
        namespace = judge.prepared(judge.compiled(body.preamble, judge.PREAMBLE))
        exec(judge.compiled(body.code, judge.TESTS), namespace)
        self._matcher: Any = namespace["matcher"]
        self._explain: Any = namespace.get("explain")  # why a value is wrong
        read: Any = namespace.get("read_arguments", decode)
        inputs, expected = body.inputs or {}, body.expected or {}
        self._inputs = {group: list(map(read, calls)) for group, calls in inputs.items()}
        self._expected = {group: list(map(decode, values)) for group, values in expected.items()}
        self._requests = {
            group: wire.dump_calls([(arguments, {}) for arguments in calls])
            for group, calls in self._inputs.items()
        }

    def run(self, channel: Channel) -> Result:
        if not self._expected:
            return self._outputs(channel)
        right = dict.fromkeys(self._inputs, 0)
        verdict = judge.PASSED
        arguments: list[Any] = []
        try:
            for group, calls in self._inputs.items():
                arguments = calls[0] if calls else []
                channel.send(self._requests[group], len(calls))
                matches = self._matcher()
                for arguments, expected in zip(calls, self._expected[group], strict=True):
                    got, failure = channel.answer()
                    if failure is None and _right(matches, arguments, expected, got):
                        right[group] += 1
                    elif verdict is judge.PASSED:
                        verdict = self._wrong(arguments, expected, got, failure)
                    if failure and failure.reason == "timeout":
                        return verdict._replace(groups=self._groups(right))
        except EndedError:
            if verdict is judge.PASSED:
                call = _shown_call(self._name, arguments, {})
                verdict = Result("ended", failing_test=call, call=call)
        return verdict._replace(groups=self._groups(right))

    def _groups(self, right: dict[str, int]) -> tuple[Group, ...]:
        return tuple(Group(name, n, len(self._inputs[name])) for name, n in right.items())

    def _outputs(self, channel: Channel) -> Result:
        """Return the encoded output of the program for each input."""
        found: dict[str, list[Any]] = {}
        slowest_s = 0.0
        try:
            for group, calls in self._inputs.items():
                found[group] = []
                for arguments in calls:  # one by one, to see how long each takes
                    started = time.monotonic()
                    channel.send(wire.dump_calls([(arguments, {})]), 1)
                    value, failure = channel.answer()
                    slowest_s = max(slowest_s, time.monotonic() - started)
                    if failure:
                        return self._wrong(arguments, None, value, failure)
                    found[group].append(encode(value))
        except EndedError:
            return Result("ended")
        return judge.PASSED._replace(outputs=found, slowest_s=slowest_s)

    def _wrong(
        self, arguments: list[Any], expected: Any, got: Any, failure: Failure | None
    ) -> Result:
        call = _shown_call(self._name, arguments, {})
        if failure and failure.raised:
            return judge.fail(failure.reason, failure.detail, call, call=call)
        if failure:  # it did not even load
            return judge.fail(failure.reason, failure.detail)
        if self._explain is not None:
            with contextlib.suppress(Exception):  # it may expect a number
                why = str(self._explain(arguments, expected, got))
                return judge.fail("wrong-answer", why, call, call=call)
        return judge.fail(
            "wrong-answer", "", call, call=call, expected=_shown(expected), actual=_shown(got),
            difference=_difference(expected, got) or None,
        )  # fmt: skip


class UnfitTests:
    """Tests that cannot be run at all."""

    def __init__(self, error: Exception) -> None:
        self._error = f"the benchmark's own tests fail: {type(error).__name__}: {error}"

    def run(self, channel: Channel) -> Result:  # noqa: ARG002 - nobody is called
        return _unfit(self._error)


def _right(matches: Any, arguments: list[Any], expected: Any, got: Any) -> bool:
    try:
        return bool(matches(arguments, expected, got))
    except Exception:  # what cannot be compared does not match
        return False


def _unfit(why: str) -> Result:
    """Report that these tests cannot run in a separate process. The program has not failed."""
    return Result("unfit", detail=why)


def _error(failure: Failure) -> Exception:
    """Return an exception like the one that the program raised, for tests that catch it."""
    if failure.raised in STEERING:
        return SteeringError(failure.detail)
    kind = getattr(builtins, failure.raised, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(TypeError):  # some need more than a message
            return kind(failure.detail)
    return RuntimeError(failure.detail)


def _shown_call(name: str, positional: Iterable[Any], named: dict[str, Any]) -> str:
    arguments = [*map(_shown, positional), *(f"{key}={_shown(v)}" for key, v in named.items())]
    return shorten(f"{name}({', '.join(arguments)})")


def _shown(value: Any) -> str:
    try:
        return shorten(repr(value))
    except Exception:  # an integer too large to print, a nesting too deep
        return f"<{type(value).__name__}>"


def _difference(expected: Any, got: Any) -> str:
    """Return where two values differ, or an empty text if their own texts show it.

    Texts are compared, not values: a program chooses what is slow to compare.
    """
    expected_text, actual_text = _shown(expected), _shown(got)
    if expected_text != actual_text and max(len(expected_text), len(actual_text)) < SHORT:
        return ""
    place = ""
    while type(expected) is type(got) and isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"{len(got)} items instead of {len(expected)}{place and ' at ' + place}"
        pairs = enumerate(zip(expected, got, strict=True))
        unequal = next(((n, a, b) for n, (a, b) in pairs if _text(a) != _text(b)), None)
        if unequal is None:
            break
        number, expected, got = unequal
        place += f"[{number}]"
    if isinstance(expected, str) and isinstance(got, str) and expected != got:
        number = next((n for n, (a, b) in enumerate(zip(expected, got)) if a != b), 0)  # noqa: B905
        place += f"[{number}]"
        expected, got = expected[number : number + NEAR], got[number : number + NEAR]
    if place:
        return f"at {place}: {_shown(expected)}, {_shown(got)}"
    if type(expected) is not type(got):
        return f"{type(got).__name__} instead of {type(expected).__name__}"
    return "the task's own comparison does not accept it" if expected_text == actual_text else ""


def _text(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # as in _shown
        return type(value).__name__


def shorten(text: str, most: int = SHORT) -> str:
    """Return the beginning and the end of a text that is too long to be shown."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"
