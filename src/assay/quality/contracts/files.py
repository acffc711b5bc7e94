"""Contracts as they are written: YAML files, one or several documents each.

    contract: name
    subject: module:function
    source: where the rules come from                  # optional
    domain:                                            # every combination of
      n: {from: 1, to: 40}                             #   whole numbers, both ends included
      tolerance: [0.1, 0.5]                            #   values of any kind
    where: c <= n                                      # optional: of these, those that fit
    obligations:                                       # for every case of the domain
      - id: bounded
        statement: in words
        holds: 0 <= f(n, c, k) <= 1
    falsification_tests:                               # single calls
      - id: none-right
        given: {n: 10, c: 0, k: 5}                     #   arguments by name, or a list of them
        expect: 0.0                                    #   or raises: ValueError
        tolerance: 1e-9                                #   optional
    wrong_subjects:                                    # what must not pass for the subject
      - id: biased
        subject: "lambda n, c, k: 1 - (1 - c / n) ** k"
        breaks: [half-right]

``domain`` may also be a list of cases. Expressions know the domain's names, ``f`` (in a wrong
subject: the right one), Python's ``math`` and the functions in ``KNOWN``. They are evaluated: a
contract is as trusted as the code that it is about.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from assay.errors import ContractError
from assay.quality.yaml_files import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOLERANCE = 1e-12
MOST_CASES = 1_000_000
KNOWN: dict[str, Any] = {
    "__builtins__": {},
    "replace": replace,  # of dataclasses
    **{name: value for name, value in vars(math).items() if not name.startswith("_")},
    **{
        function.__name__: function
        for function in (
            abs, all, any, bool, dict, enumerate, float, int, isinstance, len, list, max, min,
            pow, range, repr, reversed, round, set, sorted, str, sum, tuple, zip,
        )
    },
}  # fmt: skip
FIELDS = {
    "contract", "subject", "source", "domain", "where", "obligations", "falsification_tests",
    "wrong_subjects",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Obligation:
    """Must be true for every case of the domain."""

    id: str
    statement: str
    holds: CodeType


@dataclass(frozen=True, slots=True)
class FalsificationTest:
    """One call, and what must come of it: a value, or an exception by its name."""

    id: str
    statement: str
    given: dict[str, Any] | list[Any]
    expect: Any
    raises: str
    tolerance: float


@dataclass(frozen=True, slots=True)
class WrongSubject:
    """A function that breaks what it names, which shows that these can be broken."""

    id: str
    subject: CodeType
    breaks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    name: str
    file: str
    subject: str
    source: str
    cases: tuple[dict[str, Any], ...]
    obligations: tuple[Obligation, ...]
    tests: tuple[FalsificationTest, ...]
    wrong_subjects: tuple[WrongSubject, ...]


def read_contracts(name: str, text: str) -> list[Contract]:
    """The contracts of a file; ContractError says what is wrong with it."""
    try:
        documents = parse_yaml(text)
    except ValueError as error:
        raise ContractError(f"{name} is not valid YAML ({error})") from error
    if not documents:
        raise ContractError(f"{name} holds no contract")
    return [_Reading(name, document).contract() for document in documents]


class _Reading:
    """One document, with the place to name when something is wrong."""

    def __init__(self, file: str, document: Any) -> None:
        self._file, self._where = file, file
        self._document = self._mapping(document, "a contract")

    def contract(self) -> Contract:
        document = self._document
        name = self._text(document, "contract")
        self._where = f"{self._file}, contract {name}"
        if unknown := sorted(map(str, set(document) - FIELDS)):
            raise self._error(f"unknown field {unknown[0]!r}")
        found = Contract(
            name=name,
            file=self._file,
            subject=self._text(document, "subject"),
            source=self._text(document, "source", ""),
            cases=self._cases(),
            obligations=tuple(self._each("obligations", self._obligation)),
            tests=tuple(self._each("falsification_tests", self._test)),
            wrong_subjects=tuple(self._each("wrong_subjects", self._wrong_subject)),
        )
        self._check_ids(found)
        return found

    def _cases(self) -> tuple[dict[str, Any], ...]:
        domain = self._document.get("domain", {})
        if isinstance(domain, list):
            cases = iter([self._mapping(case, "a case of the domain") for case in domain])
        else:
            named = self._mapping(domain, "the domain")
            values = [self._values(name, given) for name, given in named.items()]
            if math.prod(map(len, values)) > MOST_CASES:
                raise self._error(f"the domain has more than {MOST_CASES} combinations")
            cases = (dict(zip(named, case, strict=True)) for case in itertools.product(*values))
        if "where" in self._document:
            where = self._expression(self._text(self._document, "where"))
            fitting = tuple(case for case in cases if self._fits(where, case))
        else:
            fitting = tuple(cases)
        if any("f" in case for case in fitting):
            raise self._error("f is the subject: name what is in the domain otherwise")
        if not fitting:
            raise self._error("the domain is empty: nothing would be shown")
        return fitting

    def _values(self, name: str, given: Any) -> list[Any] | range:
        if isinstance(given, list):
            return given
        if isinstance(given, dict) and set(given) == {"from", "to"}:
            first, last = given["from"], given["to"]
            if isinstance(first, int) and isinstance(last, int):
                if last - first > MOST_CASES:
                    raise self._error(f"the domain has more than {MOST_CASES} combinations")
                return range(first, last + 1)
        raise self._error(f"the domain of {name} must be a list or {{from: 1, to: 9}}")

    def _fits(self, where: CodeType, case: dict[str, Any]) -> bool:
        try:
            return bool(eval(where, {**KNOWN, **case}))
        except Exception as error:
            raise self._error(f"where fails for {case}: {error!r}") from error

    def _each(self, field: str, read: Callable[[dict[str, Any], str], Any]) -> Iterator[Any]:
        listed = self._document.get(field)
        if not isinstance(listed, list) or not listed:
            raise self._error(f"{field} must be a list with something in it")
        outside = self._where
        for number, item in enumerate(listed, 1):
            self._where = f"{outside}, {field} {number}"
            found = self._mapping(item, "it")
            identifier = self._text(found, "id")
            self._where = f"{outside}, {identifier}"
            yield read(found, identifier)
        self._where = outside

    def _obligation(self, found: dict[str, Any], identifier: str) -> Obligation:
        self._only(found, {"id", "statement", "holds"})
        holds = self._expression(self._text(found, "holds"))
        return Obligation(identifier, self._text(found, "statement"), holds)

    def _test(self, found: dict[str, Any], identifier: str) -> FalsificationTest:
        self._only(found, {"id", "statement", "given", "expect", "raises", "tolerance"})
        if ("expect" in found) == ("raises" in found):
            raise self._error("give one of expect and raises")
        given = found.get("given")
        if not isinstance(given, dict | list):
            raise self._error("given must hold the arguments, by name or in a list")
        try:
            tolerance = float(found.get("tolerance", TOLERANCE))  # YAML takes 1e-9 for a text
        except (TypeError, ValueError, OverflowError) as error:
            raise self._error(f"tolerance must be a number ({error})") from error
        return FalsificationTest(
            identifier,
            self._text(found, "statement", ""),
            given,
            found.get("expect"),
            self._text(found, "raises", ""),
            tolerance,
        )

    def _wrong_subject(self, found: dict[str, Any], identifier: str) -> WrongSubject:
        self._only(found, {"id", "subject", "breaks"})
        breaks = found.get("breaks")
        if not isinstance(breaks, list) or not breaks:
            raise self._error("breaks must list what this wrong subject breaks")
        subject = self._expression(self._text(found, "subject"))
        return WrongSubject(identifier, subject, tuple(map(str, breaks)))

    def _check_ids(self, found: Contract) -> None:
        checks = [*(o.id for o in found.obligations), *(t.id for t in found.tests)]
        for ids in (checks, [wrong.id for wrong in found.wrong_subjects]):
            if twice := [identifier for identifier in ids if ids.count(identifier) > 1]:
                raise self._error(f"{twice[0]} is there twice")
        for wrong in found.wrong_subjects:
            if unknown := set(wrong.breaks) - set(checks):
                raise self._error(f"{wrong.id} breaks {sorted(unknown)[0]}, which is not there")

    def _expression(self, text: str) -> CodeType:
        try:
            return compile(text, self._where, "eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise self._error(f"{text[:80]!r} is not an expression ({error})") from error

    def _mapping(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._error(f"{what} must be names with values, not {value!r:.80}")
        return value

    def _text(self, found: dict[str, Any], field: str, default: str | None = None) -> str:
        value = found.get(field, default)
        if not isinstance(value, str):
            problem = "is missing" if value is None else f"must be text, not {value!r:.80}"
            raise self._error(f"{field} {problem}")
        return value

    def _only(self, found: dict[str, Any], known: set[str]) -> None:
        if unknown := sorted(map(str, set(found) - known)):
            raise self._error(f"unknown field {unknown[0]!r}")

    def _error(self, why: str) -> ContractError:
        return ContractError(f"{self._where}: {why}")
