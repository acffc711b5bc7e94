"""Check the problems of a user's benchmark and build them."""

from __future__ import annotations

import datetime
import keyword
from collections.abc import Callable, Mapping
from typing import Any

from assay.benchmarks.own.programs import (
    complete_reference,
    complete_tests,
    is_code,
    read_call,
)
from assay.benchmarks.own.settings import OwnBenchmarkSettings
from assay.benchmarks.support.program_code import as_docstring, preamble_of
from assay.data import codec, plain, text_cases
from assay.data.checked_files import FileChecker, LocatedMapping, Mistakes, as_day, shown
from assay.data.test_code import CLOSE, code_tests
from assay.data.yaml_files import LocatedData, Place
from assay.errors import MOST_MISTAKES
from assay.types import Cases, Problem, Tests

JUDGED = ("tests", "cases", "stdin")  # a problem has one of them
KEYS = (
    "task_id", "prompt", "entry_point", *JUDGED, "reference", "cluster", "date", "labels",
)  # fmt: skip
HUMANEVAL = {"test": "tests", "canonical_solution": "reference"}  # its names, which work too
GROUP = "cases"
LONGEST_ID = 200
CODE = ("prompt", "tests", "reference")  # is parsed, which takes 130 times its size in memory
LONGEST_CODE = 1 << 23
EXACT = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
# Finite numbers may differ, wherever they are. Everything else has to be equal.
TOLERANT = f"""\
{CLOSE}def matcher():
    return lambda arguments, expected, got: got == expected or close(got, expected)


def close(got, expected):
    if isinstance(expected, (list, tuple)):
        same = type(got) is type(expected) and len(got) == len(expected)
        return same and all(map(close, got, expected))
    if isinstance(expected, dict):
        same = type(got) is dict and got.keys() == expected.keys()
        return same and all(close(got[key], expected[key]) for key in expected)
    if is_number(got) and is_number(expected):
        return got == expected or are_close(expected, got, TOLERANCE)
    return got == expected


def is_number(value):
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, float)
"""


class ProblemChecker(FileChecker):
    """Check problems, and build those without mistakes."""

    def __init__(
        self, found: LocatedData, mistakes: Mistakes, settings: OwnBenchmarkSettings
    ) -> None:
        super().__init__(found, mistakes)
        self._settings = settings
        for place, line in found.not_text:
            mistakes.add(line, f"the key {place[-1]} is not text. Write it in quotes.")
        matcher = TOLERANT.replace("TOLERANCE", repr(settings.tolerance))
        self._matcher = matcher if settings.tolerance else EXACT

    def read(self, place: Place, items: list[Any]) -> tuple[Problem, ...]:
        """Return the problems of a list. Mistakes of all of them are collected."""
        if not items:
            self.add(place, "there are no problems. Give at least one.")
        lines, problems = [], []
        for number, item in enumerate(items):
            here = (*place, number)
            entry = LocatedMapping(here, self._rename(here, self.mapping(here, item)))
            if not isinstance(item, dict):
                continue
            self.check_keys(entry, KEYS)
            task_id = self._task_id(entry, f"{self._settings.name}/{number}")
            lines.append((task_id, self.found.line(here)))
            if (problem := self._problem(entry, task_id)) is not None:
                problems.append(problem)
            elif len(self.mistakes.found) >= MOST_MISTAKES:
                break
        self.check_names("task_id", lines, "Give it another")
        return tuple(problems)

    def _rename(self, place: Place, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a problem's values under their own names."""
        for name, other in HUMANEVAL.items():
            if name in values and other in values:
                self.add((*place, name), f"'{name}' and '{other}' mean the same. Drop one.")
        return {HUMANEVAL.get(name, name): value for name, value in values.items()}

    def _problem(self, entry: LocatedMapping, task_id: str) -> Problem | None:
        before = len(self.mistakes.found)
        prompt = self._text(entry, "prompt", required=True)
        judged = self._judged_by(entry)
        entry_point = self._entry_point(entry, judged)
        code = self._is_code(entry, prompt, judged)
        tests = None
        if judged in ("tests", "stdin") or (judged and entry_point):
            tests = self._tests(entry, judged, entry_point, prompt if code else "")
        reference = self._reference(entry, entry_point, prompt if code else "", tests)
        cluster, date = self._text(entry, "cluster"), self._date(entry)
        labels = self._labels(entry)
        if tests is None or len(self.mistakes.found) > before:
            return None
        return Problem(
            task_id=task_id,
            prompt=prompt,
            reference=reference,
            tests=tests,
            cluster=cluster or None,
            date=date or None,
            labels=labels,
            system=self._settings.system,
            begun="" if code else as_docstring(prompt),
        )

    def _task_id(self, entry: LocatedMapping, default: str) -> str:
        value = entry.values.get("task_id", default)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= LONGEST_ID:
            return value
        advice = f"Give one line of at most {LONGEST_ID} characters."
        self.add((*entry.place, "task_id"), f"task_id: {shown(value)} is not an id. {advice}")
        return default

    def _judged_by(self, entry: LocatedMapping) -> str:
        given = [key for key in JUDGED if key in entry.values]
        if len(given) == 1:
            return given[0]
        what = f"has {' and '.join(given)}" if given else "has no tests"
        self.add(entry.place, f"the problem {what}. Give one of {', '.join(JUDGED)}.")
        return ""

    def _entry_point(self, entry: LocatedMapping, judged: str) -> str:
        place = (*entry.place, "entry_point")
        if judged == "stdin":
            if "entry_point" in entry.values:
                self.add(place, "entry_point: a program on standard input has none. Drop it.")
            return ""
        value = entry.values.get("entry_point")
        if isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value):
            return value
        what = "is missing" if value is None else f"{shown(value)} is not a name"
        self.add(place, f"entry_point: {what}. Give the function that the tests call.")
        return ""

    def _is_code(self, entry: LocatedMapping, prompt: str, judged: str) -> bool:
        """Return whether the prompt is code that is continued. Otherwise it is an instruction."""
        found, wanted = bool(prompt) and is_code(prompt), self._settings.prompts
        place = (*entry.place, "prompt")
        if found and (judged == "stdin" or wanted == "instructions"):
            why = "a program on standard input" if judged == "stdin" else "prompts: instructions"
            self.add(place, f"prompt: is Python code, but {why} needs an instruction in words.")
        elif prompt and not found and wanted == "code":
            advice = "End it with a docstring, or use prompts: instructions."
            self.add(place, f"prompt: is not valid Python. {advice}")
        return found

    def _tests(
        self, entry: LocatedMapping, judged: str, entry_point: str, begun: str
    ) -> Tests | None:
        before = len(self.mistakes.found)
        prompt_code = preamble_of(begun, entry_point) if begun else ""
        place = (*entry.place, judged)
        if judged == "tests":
            if code := self._text(entry, "tests", required=True):
                whole = self._attempt_in(place, complete_tests, code, entry_point)
                return code_tests(entry_point, whole, prompt_code) if whole else None
            return None
        listed = self.items(place, entry.values[judged])
        if not listed and len(self.mistakes.found) == before:
            self.add(place, f"{judged}: there are no cases. Give at least one.")
        if judged == "stdin":
            return self._stdin_tests(place, listed)
        cases = self._cases(place, listed, entry_point)
        if cases is None or len(self.mistakes.found) > before:
            return None
        return Tests(
            entry_point, self._matcher, prompt_code, integrity="separated", cases=cases,
            prompt_code=prompt_code,
        )  # fmt: skip

    def _stdin_tests(self, place: Place, listed: list[Any]) -> Tests | None:
        before = len(self.mistakes.found)
        pairs = []
        for number, item in enumerate(listed):
            case = self.entry((*place, number), item, ("input", "output"))
            given = self._text(case, "input", required=True, empty=True)
            pairs.append((given, self._text(case, "output", required=True, empty=True)))
        if len(self.mistakes.found) > before:
            return None
        if not any(output.strip() for _, output in pairs):
            self.add(place, "stdin: no case expects any output. Every program would pass.")
            return None
        texts = text_cases.pack(pairs, comparison=self._settings.comparison)
        return Tests("", "", integrity="separated", texts=texts)

    def _cases(self, place: Place, listed: list[Any], entry_point: str) -> Cases | None:
        inputs, expected = [], []
        for number, item in enumerate(listed):
            here = (*place, number)
            if isinstance(item, str):
                found = self.attempt(here, read_call, item, entry_point)
                args, result = found if found is not None else ([], None)
                values = {"expected": result}
            else:
                case = self.entry(here, item, ("args", "expected"))
                values = {"expected": case.values["expected"]} if "expected" in case.values else {}
                args = self._arguments(case) if isinstance(item, dict) else []
            inputs.append(self._plain(here, args))
            if values:
                expected.append(self._plain(here, values["expected"]))
                if _has_nan(values["expected"]):
                    self.add(here, "a case expects NaN, which equals nothing. Use 'tests'.")
        if expected and len(expected) < len(inputs):
            what = f"{len(inputs) - len(expected)} of {len(inputs)} cases have no 'expected'"
            self.add(place, f"cases: {what}. Give it to all of them, or to none.")
            return None
        groups = {GROUP: inputs}, {GROUP: expected} if expected else {}
        return Cases(*groups, codec.digest(groups))

    def _arguments(self, case: LocatedMapping) -> list[Any]:
        if "args" in case.values:
            return self.items((*case.place, "args"), case.values["args"])
        self.add(case.place, "a case has no 'args'. Give the list of arguments.")
        return []

    def _plain(self, place: Place, value: Any) -> Any:
        """Return a value as tests and programs exchange it."""
        encoded = plain.encode(value)
        if plain.has_opaque(encoded):
            self.add(place, "a case has a value that is not plain data. Write it in quotes.")
        return encoded

    def _reference(
        self, entry: LocatedMapping, entry_point: str, begun: str, tests: Tests | None
    ) -> str:
        code = self._text(entry, "reference")
        if not code:
            if tests and tests.cases and not tests.cases.expected:
                advice = "Give a reference, or 'expected' in each case."
                self.add(entry.place, f"nothing says what the cases expect. {advice}")
            return ""
        if not entry_point and "stdin" not in entry.values:
            return code
        place = (*entry.place, "reference")
        return self._attempt_in(place, complete_reference, code, entry_point, begun) or ""

    def _date(self, entry: LocatedMapping) -> str:
        value = as_day(entry.values.get("date", ""))
        try:
            if value == "" or datetime.date.fromisoformat(value).isoformat() == value:
                return str(value)
        except (TypeError, ValueError):
            pass
        advice = "Give one such as 2024-08-01."
        self.add((*entry.place, "date"), f"date: {shown(value)} is not a day. {advice}")
        return ""

    def _labels(self, entry: LocatedMapping) -> dict[str, str]:
        place = (*entry.place, "labels")
        found = self.mapping(place, entry.values.get("labels", {}))
        for name, value in found.items():
            is_text = isinstance(value, str | int) and not isinstance(value, bool)
            if not (is_text and name and "=" not in name and f"{name}{value}".isprintable()):
                mistake = f"labels: {shown(name)} is not a name with a text. Quote it."
                self.add((*place, name), mistake)
        return {name: str(value) for name, value in found.items()}

    def _text(
        self, entry: LocatedMapping, key: str, *, required: bool = False, empty: bool = False
    ) -> str:
        value = entry.values.get(key)
        place = (*entry.place, key)
        if value is None and key not in entry.values:
            if required:
                self.add(entry.place, f"{key}: is missing. Add it.")
            return ""
        if not isinstance(value, str):
            self.add(place, f"{key}: {shown(value)} is not text. Write it in quotes.")
        elif not (empty or value.strip()):
            self.add(place, f"{key}: is empty. Write a text, or drop the key.")
        elif key in CODE and len(value) > LONGEST_CODE:
            self.add(place, f"{key}: has more than {LONGEST_CODE:,} characters. Shorten it.")
        else:
            return self.text(place, value)
        return ""

    def _attempt_in(self, place: Place, read: Callable[..., str], *arguments: str) -> str | None:
        """Apply a function to a key's text and return the result, or None after a mistake."""
        try:
            return read(*arguments)
        except ValueError as error:
            self.add(place, f"{place[-1]}: {error}. Correct it.")
            return None


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nan, (*value, *value.values())))
    if isinstance(value, list | tuple | set):
        return any(map(_has_nan, value))
    return bool(value != value)
