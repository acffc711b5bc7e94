"""Read the body of ``POST /judge``: programs, and what each is judged by."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Literal, get_args

from assay.judging import JudgeTask
from assay.judging.wire import NAMED, name_tests
from assay.serve.backlog import Task
from assay.serve.catalogue import Served
from assay.serve.client_tests import make_subject
from assay.serve.service import RequestRefusedError, Service
from assay.serve.stage import JudgeWork
from assay.types import Limits, PromptForm

LONGEST_NAME = 500
# JSON is parsed in one piece that nothing interrupts, about 0.3 s per million values.
MOST_VALUES = 2_000_000
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
FIELDS = {
    "programs", "benchmark", "tests", "named_tests", "limits", "prompt_form", "stream",
    "with_program",
}  # fmt: skip
PROGRAM_FIELDS = {
    "id", "program", "completion", "benchmark", "task_id", "tests", "limits", "prompt_form",
    "truncated", "rule", "seed", "imports", "environment", "alone",
}  # fmt: skip
LIMITS: dict[str, type[Any]] = {
    one.name: type(getattr(Limits(), one.name)) for one in fields(Limits)
}
Data = dict[str, Any]


class BadRequestError(RequestRefusedError, ValueError):
    """A request has a mistake, or is too large to be parsed."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(status, why)


def parse_object(body: bytes) -> Data:
    """Return the JSON object of a body. Raise BadRequestError if it is not one, or too large."""
    if count_values(body) > MOST_VALUES:
        raise BadRequestError(
            f"body: has more than {MOST_VALUES:,} values. Send several requests.", 413
        )
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"body: is not valid JSON ({error})") from error
    if not isinstance(data, dict):
        raise BadRequestError("body: is not a JSON object")
    return data


def count_values(body: bytes) -> int:
    """Return about how many values a JSON body has. Texts are skipped only if that matters."""
    count = _count_separators(body)
    return count if count <= MOST_VALUES else _count_separators(_STRING.sub(b"", body))


def _count_separators(body: bytes) -> int:
    return sum(map(body.count, (b",", b"[", b"{", b":")))


class JudgeRequest:
    """The programs of one request. Its form is checked first, and its benchmarks are needed later.

    Raise BadRequestError, or RequestRefusedError for names of tests that are not known here.
    """

    def __init__(self, body: bytes, service: Service) -> None:
        self._service = service
        self._common = data = parse_object(body)
        _check_names(data, FIELDS, "body")
        programs, most = data.get("programs"), service.options.batch
        if not isinstance(programs, list) or not programs:
            raise BadRequestError("programs: needs a list of at least one program")
        if len(programs) > most:
            raise BadRequestError(
                f"programs: {len(programs)} are more than the {most} of one request. "
                "Send several requests."
            )
        for number, one in enumerate(programs):
            if not isinstance(one, dict):
                raise BadRequestError(f"programs[{number}]: is not an object")
            _check_names(one, PROGRAM_FIELDS, f"programs[{number}]")
        self._programs: list[Data] = programs
        self.streams = _flag(data, "stream")  # verdicts are wanted as they come
        self._unknown: dict[str, None] = {}
        self._names: dict[int, tuple[str, int]] = {}  # of tests, by identity: many share them

    def benchmarks(self) -> set[str]:
        """Return the names of the benchmarks that are needed."""
        names = {self._benchmark_of(one) for one in self._programs if self._tests_of(one) is None}
        return names - {""}

    def environments(self) -> set[str]:
        """Return the sets of packages that programs ask for by themselves."""
        return {_word(one, "environment") for one in self._programs} - {""}

    def _tests_of(self, one: Data) -> Any:
        """Return the client's tests for a program, or None if it is of a benchmark."""
        if "tests" in one:
            return one["tests"]
        return None if "benchmark" in one else self._common.get("tests")

    def _benchmark_of(self, one: Data) -> str:
        return _text(one if "benchmark" in one else self._common, "benchmark", "")

    def read(self, served: Mapping[str, Served]) -> list[Task]:
        """Return the work for all programs, given the benchmarks that are needed."""
        self._served, common = served, self._common
        self._named = self._read_named(common.get("named_tests", {}))
        self._limits = _read_limits(common.get("limits"))
        self._form = _form(common, "chat")
        self._with_program = _flag(common, "with_program")
        tasks = []
        for index, one in enumerate(self._programs):
            try:
                if (task := self._read_one(index, one)) is not None:
                    tasks.append(task)
            except ValueError as error:
                raise BadRequestError(f"programs[{index}].{error}") from error
            except RecursionError as error:
                raise BadRequestError(f"programs[{index}].tests: are nested too deeply") from error
        if unknown := list(self._unknown):
            why = "named_tests: some are not known to this server. Send them again."
            raise RequestRefusedError(409, why, {"unknown_tests": unknown})
        return tasks

    def _read_one(self, index: int, one: Data) -> Task | None:
        task_id = _word(one, "task_id")
        own = self._tests_of(one)
        subject = self._from_benchmark(one, task_id) if own is None else self._subject(own, one)
        if subject is None:
            return None
        limits = self._apply(subject.limits, one)
        kind: Literal["program", "completion"] = "completion" if "completion" in one else "program"
        if ("completion" in one) == ("program" in one):
            raise ValueError("program: give either a program or a completion")
        tests = subject.problem.tests
        if kind == "completion" and not (tests.entry_point or tests.is_script or tests.answer):
            raise ValueError("tests.entry_point: is needed to find the program in a completion")
        return subject, JudgeWork(
            number=self._service.engine.backlog.next_number(),
            kind=kind,
            text=_text(one, kind),
            limits=limits,
            task_id=task_id,
            position=index,
            name=_name(one),
            form=_form(one, self._form),
            truncated=_flag(one, "truncated"),
            with_program=self._with_program,
            rule=_word(one, "rule", "given"),
            seed=_word(one, "seed"),
            alone=_flag(one, "alone"),
        )

    def _from_benchmark(self, one: Data, task_id: str) -> JudgeTask:
        name = self._benchmark_of(one)
        if not name:
            raise ValueError("tests: give tests, or a benchmark and a task_id")
        served = self._served[name]
        if task_id not in served.subjects:
            raise ValueError(f"task_id: {task_id[:80]!r} is not a task of {name}")
        return served.subjects[task_id]

    def _subject(self, own: Any, one: Data) -> JudgeTask | None:
        """Return the subject of a client's tests, or None if they are named and not known."""
        imports, environment = _imports(one), _word(one, "environment")
        suffix = f" {imports} {environment}" if imports or environment else ""
        held = self._service.tests
        if isinstance(own, str):
            if own not in self._named:
                if not own.startswith(NAMED):
                    raise ValueError(f"tests: {own[:80]!r} is not in named_tests")
                known = held.find(own + suffix)
                if known is None:
                    self._unknown[own] = None
                return known
            own = self._named[own]
        if id(own) not in self._names:
            self._names[id(own)] = name_tests(own)
        content, size = self._names[id(own)]
        catalogue = self._service.catalogue
        return held.add(
            content + suffix, size, lambda: make_subject(own, imports, environment, catalogue)
        )

    def _read_named(self, named: Any) -> Data:
        if not isinstance(named, dict):
            raise BadRequestError("named_tests: is not an object")
        for name, data in named.items():
            try:
                right = not name.startswith(NAMED) or name == name_tests(data)[0]
            except RecursionError as error:
                raise BadRequestError(f"named_tests: {name[:80]} is nested too deeply") from error
            if not right:
                raise BadRequestError(f"named_tests: {name[:80]} is not the digest of its tests")
        return named

    def _apply(self, base: Limits, one: Data) -> Limits:
        """Return limits with the request's own, which the server's bound."""
        own = {**self._limits, **_read_limits(one.get("limits"))}
        if not own:
            return base
        limits, options = replace(base, **own), self._service.options
        if excess := options.find_excess(limits):
            raise ValueError(excess)
        return options.round_limits(limits)


def _read_limits(data: Any) -> Data:
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadRequestError("limits: is not an object")
    _check_names(data, set(LIMITS), "limits")
    for name, value in data.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise BadRequestError(f"limits.{name}: is not a number")
    return {name: LIMITS[name](max(-1, min(value, 1 << 40))) for name, value in data.items()}


def _check_names(data: Data, known: set[str], where: str) -> None:
    if not data.keys() <= known:
        unknown = sorted(data.keys() - known)[0]
        raise BadRequestError(f"{where}: unknown field {unknown[:80]!r}")


def _text(data: Data, name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str):
        raise BadRequestError(f"{name}: is not a text, or is missing")
    return value


def _word(data: Data, name: str, default: str = "") -> str:
    """Return a short text that any process can encode: names reach workers next to programs."""
    value = _text(data, name, default)
    if len(value) > LONGEST_NAME:
        raise BadRequestError(f"{name}: is longer than {LONGEST_NAME} characters")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can write half of a surrogate pair
        raise BadRequestError(f"{name}: is not valid Unicode") from None
    return value


def _flag(data: Data, name: str) -> bool:
    value = data.get(name, False)
    if not isinstance(value, bool):
        raise BadRequestError(f"{name}: is not true or false")
    return value


def _form(data: Data, default: PromptForm) -> PromptForm:
    value = data.get("prompt_form", default)
    if value not in get_args(PromptForm):
        raise BadRequestError("prompt_form: choose chat or text")
    form: PromptForm = value
    return form


def _name(one: Data) -> str | None:
    value = one.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None if value is None else _word(one, "id")


def _imports(one: Data) -> tuple[str, ...]:
    value = one.get("imports", [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadRequestError("imports: is not a list of names")
    return tuple(value)
