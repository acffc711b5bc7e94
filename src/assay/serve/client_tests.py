"""Build tests from a client's request: test code, function cases, or pairs of input and output."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, get_args

from assay.data import text_cases
from assay.data.test_code import COMPARISONS, call_tests, code_tests, script_tests
from assay.judging import JudgeTask
from assay.judging.wire import decode_tests
from assay.serve.catalogue import Catalogue
from assay.types import Integrity, Limits, Problem, Tests

TESTS_ROOM = 64 << 20  # bytes of clients' tests that are held
MOST_UNPACKED = 512 << 20  # bytes of the texts of one problem
PIECE = 1 << 20
MOST_CASES = 10_000  # of one program; the most of any benchmark are 2,000
LONGEST_CODE = 1 << 20  # characters
LONGEST_PARSED = 1 << 18  # characters: parsed in one step of the server's process, 0.3 s


class ClientTests:
    """Clients' tests, the latest that fit. Equal ones are one subject, which is sent once.

    Thread-safe.
    """

    def __init__(self, room: int = TESTS_ROOM) -> None:
        self._room = room
        self._held: OrderedDict[str, tuple[JudgeTask, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, name: str) -> JudgeTask | None:
        """Return tests by their name."""
        with self._lock:
            if name not in self._held:
                return None
            self._held.move_to_end(name)
            return self._held[name][0]

    def add(self, name: str, size: int, make: Callable[[], JudgeTask]) -> JudgeTask:
        """Return the tests of this name, which are made if they are not held."""
        if (held := self.find(name)) is not None:
            return held
        subject = make()
        with self._lock:
            if name in self._held:  # another request has made them meanwhile
                return self._held[name][0]
            self._held[name] = subject, size
            self._size += size
            while self._size > self._room and len(self._held) > 1:
                _, (_, freed) = self._held.popitem(last=False)
                self._size -= freed
        return subject


def make_subject(
    data: Any, imports: tuple[str, ...], environment: str, catalogue: Catalogue
) -> JudgeTask:
    """Return a client's tests as a subject. Raise ValueError if they are malformed.

    What a worker runs before it is isolated must be that of a benchmark.
    """
    tests = read_tests(data)
    remedy = "is not of a benchmark that this server has loaded. Start it with --benchmark NAME"
    if unknown := sorted(set(imports) - catalogue.imports):
        raise ValueError(f"imports: {unknown[0][:80]!r} {remedy}")
    if tests.is_script and tests.preamble not in catalogue.preludes:
        raise ValueError(f"tests.preamble: the code before scripts {remedy}")
    return JudgeTask(Problem("", "", "", tests), Limits(), imports, environment)


def read_tests(data: Any) -> Tests:
    """Return the tests that JSON data describes. Raise ValueError if they are malformed."""
    if not isinstance(data, dict):
        raise ValueError("tests: expected an object")
    kinds = [name for name in READERS if name in data]
    if len(kinds) != 1:
        raise ValueError(f"tests: need exactly one of the fields {', '.join(READERS)}")
    allowed = FIELDS[kinds[0]]
    if unknown := sorted(set(data) - allowed):
        raise ValueError(f"tests: unknown field {unknown[0]!r}")
    return READERS[kinds[0]](data)


def _code(data: dict[str, Any]) -> Tests:
    code, entry_point = _text(data, "code"), _name(data, "")
    if len(code) > LONGEST_CODE:
        raise ValueError(f"tests.code: is longer than {LONGEST_CODE} characters")
    preamble, integrity = _text(data, "preamble", ""), data.get("integrity")
    if integrity is not None and integrity not in get_args(Integrity):
        raise ValueError(f"tests.integrity: choose {', '.join(get_args(Integrity))}")
    if not entry_point:
        if integrity == "separated":
            raise ValueError("tests.entry_point: is needed for separated tests")
        return Tests("", code, preamble)
    if integrity is not None:
        return Tests(entry_point, code, preamble, integrity)
    if len(code) + len(preamble) > LONGEST_PARSED:
        raise ValueError(
            f"tests.code: is longer than {LONGEST_PARSED} characters with its preamble. Shorten "
            "it, or give integrity"
        )
    try:
        return code_tests(entry_point, code, preamble)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"tests.code: is not valid Python ({error})") from error


def _cases(data: dict[str, Any]) -> Tests:
    tolerance = data.get("tolerance", 0.0)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        raise ValueError("tests.tolerance: is not a number")
    pairs = []
    for number, case in enumerate(_list(data, "cases")):
        match case:
            case {"arguments": list(arguments), "expected": value}:
                pairs.append((arguments, value))
            case _:
                raise ValueError(f"tests.cases[{number}]: needs arguments (a list) and expected")
    preamble = _text(data, "preamble", "")
    try:
        return call_tests(_name(data), pairs, tolerance, preamble=preamble)
    except ValueError as error:
        raise ValueError(f"tests.{error}") from error


def _stdin(data: dict[str, Any]) -> Tests:
    comparison = data.get("comparison", "exact")
    if comparison not in COMPARISONS:
        raise ValueError(f"tests.comparison: choose {', '.join(COMPARISONS)}")
    pairs = []
    for number, case in enumerate(_list(data, "stdin_cases")):
        match case:
            case {"input": str(text), "output": str(output)}:
                pairs.append((text, output))
            case _:
                raise ValueError(f"tests.stdin_cases[{number}]: needs the texts input and output")
    if not any(output.strip() for _, output in pairs):
        raise ValueError("tests.stdin_cases: expect no output, so that every program passes")
    run_all = data.get("all_cases", True)
    if not isinstance(run_all, bool):
        raise ValueError("tests.all_cases: is not true or false")
    return script_tests(pairs, comparison, run_all=run_all)


def _native(data: dict[str, Any]) -> Tests:
    """Return tests in full. What is wrong with them must show here, not in a worker."""
    tests = decode_tests(data["native"])
    if tests.answer:
        raise ValueError(
            "tests.native.answer: is not accepted, because such answers are judged by the client"
        )
    if tests.cases:
        _check_count(sum(map(len, tests.cases.inputs.values())), "native.cases")
    if tests.texts:
        room = MOST_UNPACKED
        for part in tests.texts.packed:
            room -= _measure(part, room)
        _check_count(len(text_cases.unpack(tests.texts)), "native.texts")
    return tests


def _measure(part: bytes, room: int) -> int:
    """Return the size of a packed part. Raise ValueError if it is damaged, or more than fits."""
    unpacker, size, rest = zlib.decompressobj(), 0, part
    try:
        while rest and not unpacker.eof:
            size += len(unpacker.decompress(rest, PIECE))
            rest = unpacker.unconsumed_tail
            if size > room:
                raise ValueError(f"tests.texts: are larger than {MOST_UNPACKED >> 20} MB")
    except zlib.error as error:
        raise ValueError(f"tests.texts: are damaged ({error})") from error
    return size


READERS: dict[str, Callable[[dict[str, Any]], Tests]] = {
    "code": _code, "cases": _cases, "stdin_cases": _stdin, "native": _native,
}  # fmt: skip
FIELDS = {
    "code": {"code", "entry_point", "preamble", "integrity"},
    "cases": {"cases", "entry_point", "preamble", "tolerance"},
    "stdin_cases": {"stdin_cases", "comparison", "all_cases"},
    "native": {"native"},
}


def _text(data: dict[str, Any], name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        raise ValueError(f"tests.{name}: is not a text, or is missing")
    return value


def _name(data: dict[str, Any], default: str | None = None) -> str:
    name = _text(data, "entry_point", default)
    if name and not name.isidentifier():
        raise ValueError("tests.entry_point: is not a name")
    return name


def _list(data: dict[str, Any], name: str) -> list[Any]:
    value = data[name]
    if not isinstance(value, list) or not value:
        raise ValueError(f"tests.{name}: needs at least one case")
    _check_count(len(value), name)
    return value


def _check_count(count: int, name: str) -> None:
    if count > MOST_CASES:
        raise ValueError(f"tests.{name}: {count:,} are more than {MOST_CASES:,} for one program")
