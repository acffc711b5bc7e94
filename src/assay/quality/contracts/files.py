"""Read contracts: YAML files of one or several documents each.

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

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType

from assay.data import codec
from assay.data.yaml_files import parse_yaml
from assay.errors import ContractError

TOLERANCE = 1e-12
MOST_CASES = 1_000_000
NOT_GIVEN = object()
KNOWN: dict[str, object] = {
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


@dataclass(frozen=True, slots=True)
class Obligation:
    """Hold an expression that must be true for every case of the domain."""

    id: str
    statement: str
    holds: str


@dataclass(frozen=True, slots=True)
class FalsificationTest:
    """Hold one call and its expected outcome: a value, or the name of an exception."""

    id: str
    given: object
    statement: str = ""
    expect: object = NOT_GIVEN
    raises: str = ""
    tolerance: float = TOLERANCE

    def arguments(self) -> tuple[Sequence[object], dict[str, object]]:
        """Return the positional arguments and those by name."""
        if isinstance(self.given, dict):
            return (), self.given
        if isinstance(self.given, list):
            return self.given, {}
        raise ValueError(f"{self.id}: given must hold the arguments, by name or in a list")


@dataclass(frozen=True, slots=True)
class WrongSubject:
    """Hold a function that breaks the named checks, which shows that these can fail."""

    id: str
    subject: str
    breaks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """Hold a contract as it is written."""

    contract: str
    subject: str
    obligations: tuple[Obligation, ...]
    falsification_tests: tuple[FalsificationTest, ...]
    wrong_subjects: tuple[WrongSubject, ...]
    source: str = ""
    domain: object = field(default_factory=dict)
    where: str = "True"

    @property
    def checks(self) -> tuple[Obligation | FalsificationTest, ...]:
        return *self.obligations, *self.falsification_tests


@dataclass(frozen=True, slots=True)
class Contract:
    """Hold a valid contract, with every case of its domain."""

    file: str
    terms: Terms
    cases: tuple[dict[str, object], ...]

    @property
    def name(self) -> str:
        return self.terms.contract


def read_contracts(file: str, text: str) -> list[Contract]:
    """Return the contracts of a file. Raise ContractError that says what is wrong with it."""
    try:
        documents = parse_yaml(text)
    except ValueError as error:
        raise ContractError(f"{file}: is not valid YAML ({error}).") from error
    if not documents:
        raise ContractError(f"{file}: has no contract. See docs/quality.md.")
    return [_read(file, document) for document in documents]


def _read(file: str, document: object) -> Contract:
    where = file
    try:
        terms = codec.from_json(Terms, document)
        where = f"{file}, contract {terms.contract}"
        _check(terms)
        return Contract(file, terms, _cases(terms))
    except (TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"{where}: {error}") from error


def _check(terms: Terms) -> None:
    """Raise ValueError for errors that types do not show."""
    for name in ("obligations", "falsification_tests", "wrong_subjects"):
        if not getattr(terms, name):
            raise ValueError(f"{name} must be a list with at least one entry")
    for test in terms.falsification_tests:
        test.arguments()
        if (test.expect is NOT_GIVEN) == (not test.raises):
            raise ValueError(f"{test.id}: give one of expect and raises")
    checks = [check.id for check in terms.checks]
    for ids in (checks, [wrong.id for wrong in terms.wrong_subjects]):
        if twice := [identifier for identifier in ids if ids.count(identifier) > 1]:
            raise ValueError(f"{twice[0]} is defined twice")
    for wrong in terms.wrong_subjects:
        compile_expression(wrong.subject)
        if unknown := set(wrong.breaks) - set(checks):
            raise ValueError(f"{wrong.id} breaks {sorted(unknown)[0]}, which does not exist")
    for obligation in terms.obligations:
        compile_expression(obligation.holds)


def _cases(terms: Terms) -> tuple[dict[str, object], ...]:
    fitting = tuple(case for case in _combinations(terms.domain) if _fits(terms.where, case))
    if not fitting:
        raise ValueError("the domain is empty, so nothing would be checked")
    if any("f" in case for case in fitting):
        raise ValueError("f is the subject, so no variable of the domain can have that name")
    return fitting


def _combinations(domain: object) -> Iterable[dict[str, object]]:
    if isinstance(domain, list) and all(isinstance(case, dict) for case in domain):
        return domain
    if not isinstance(domain, dict):
        raise ValueError("the domain must map names to values, or be a list of cases")
    values = [_values(name, given) for name, given in domain.items()]
    if math.prod(map(len, values)) > MOST_CASES:
        raise ValueError(f"the domain has more than {MOST_CASES} combinations")
    return (dict(zip(domain, case, strict=True)) for case in itertools.product(*values))


def _values(name: str, given: object) -> Sequence[object]:
    if isinstance(given, list):
        return given
    match given:
        case {"from": int(first), "to": int(last), **rest} if not rest:
            return range(first, min(last, first + MOST_CASES) + 1)
    raise ValueError(f"the domain of {name} must be a list or {{from: 1, to: 9}}")


def _fits(where: str, case: dict[str, object]) -> bool:
    code = compile_expression(where)
    try:
        return bool(eval(code, {**KNOWN, **case}))
    except Exception as error:
        raise ValueError(f"where fails for {case}: {error!r}") from error


@functools.cache
def compile_expression(text: str) -> CodeType:
    """Compile an expression of a contract once. Raise ValueError if it is not one."""
    try:
        return compile(text, "<contract>", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"{text[:80]!r} is not an expression ({error})") from error
