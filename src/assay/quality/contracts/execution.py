"""Execute contracts: obligations over their whole domain, single tests, and wrong subjects.

A contract that cannot fail shows nothing. So one of the contract's wrong subjects must break every
obligation and every test, and a wrong subject must break what it claims to break.
"""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.reading import FileReader
from assay.errors import ContractError
from assay.quality.contracts.files import (
    KNOWN,
    Contract,
    FalsificationTest,
    Obligation,
    WrongSubject,
    compile_expression,
    read_contracts,
)

Subject = Callable[..., Any]
FOLDER = "contracts"  # in the package when it is installed, else in the checkout
FILES = FileReader(ContractError, "Give a YAML file; see docs/quality.md", 1 << 20, unpack=False)
SHOWN = 120  # characters of a value


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one line of a contract."""

    contract: str
    id: str
    kind: str  # obligation, falsification test, wrong subject
    statement: str
    ok: bool
    detail: str  # why not; or how much was tried


def contract_files() -> list[Traversable]:
    """Return the project's own contracts."""
    packaged = resources.files("assay") / FOLDER
    folder = packaged if packaged.is_dir() else Path(__file__).parents[4] / FOLDER
    files = folder.iterdir() if folder.is_dir() else ()
    contracts = sorted((f for f in files if f.name.endswith(".yaml")), key=lambda file: file.name)
    if not contracts:
        raise ContractError("contracts: missing from this installation. Install assay again.")
    return contracts


def load(files: Sequence[Traversable]) -> list[Contract]:
    contracts = []
    for file in files:
        text = file.read_text("utf-8") if not isinstance(file, Path) else FILES.read_text(file)
        contracts += read_contracts(file.name, text)
    names = [contract.name for contract in contracts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ContractError(f"contract {twice[0]}: defined twice. Rename one.")
    return contracts


def execute(contract: Contract) -> Iterator[Check]:
    """Execute every line of a contract."""
    terms, subject = contract.terms, _subject(contract)
    can_fail = {identifier for wrong in terms.wrong_subjects for identifier in wrong.breaks}
    for check in terms.checks:
        broken = _find_failure(contract, check, subject)
        if not broken and check.id not in can_fail:
            broken = "no wrong subject shows that it can fail"
        is_test = isinstance(check, FalsificationTest)
        kind = "falsification test" if is_test else "obligation"
        tried = "" if is_test else f"{len(contract.cases)} cases"
        yield Check(contract.name, check.id, kind, check.statement, not broken, broken or tried)
    for wrong in terms.wrong_subjects:
        useless = _find_fault(contract, wrong, subject)
        statement = f"breaks {', '.join(wrong.breaks)}"
        yield Check(contract.name, wrong.id, "wrong subject", statement, not useless, useless)


def _find_fault(contract: Contract, wrong: WrongSubject, subject: Subject) -> str:
    """Return why a wrong subject shows nothing, or an empty text if it breaks all it names."""
    try:
        other = eval(compile_expression(wrong.subject), {**KNOWN, "f": subject})
        unbroken = [
            check.id
            for check in contract.terms.checks
            if check.id in wrong.breaks and not _find_failure(contract, check, other, wrong=True)
        ]
    except Exception as error:
        return f"fails in another way: {_show(error)}"
    return f"does not break {', '.join(unbroken)}" if unbroken else ""


def _subject(contract: Contract) -> Subject:
    name = contract.terms.subject
    module, _, function = name.partition(":")
    try:
        subject: Subject = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ContractError(
            f"{contract.file}, contract {contract.name}: unknown subject {name} ({error})."
        ) from error
    if not callable(subject):
        raise ContractError(f"{contract.file}, contract {contract.name}: {name} is not a function.")
    return subject


def _find_failure(
    contract: Contract,
    check: Obligation | FalsificationTest,
    subject: Subject,
    *,
    wrong: bool = False,
) -> str:
    """Return how a check fails, or an empty text if it holds.

    A wrong subject must break it by its results. One that cannot even be called would break
    everything and show nothing, so its exceptions are raised.
    """
    if isinstance(check, FalsificationTest):
        return _run_test(check, subject, wrong=wrong)
    holds = compile_expression(check.holds)
    for case in contract.cases:
        try:
            if not eval(holds, {**KNOWN, "f": subject, **case}):
                return f"does not hold for {_show(case)}"
        except Exception as error:
            if wrong:
                raise
            return f"for {_show(case)}: {error!r}"
    return ""


def _run_test(test: FalsificationTest, subject: Subject, *, wrong: bool) -> str:
    positional, named = test.arguments()
    try:
        value = subject(*positional, **named)
    except Exception as error:
        if test.raises:
            names = [kind.__name__ for kind in type(error).__mro__]
            return "" if test.raises in names else f"raised {error!r}, not {test.raises}"
        if wrong:
            raise
        return f"raised {error!r}"
    if test.raises:
        return f"returned {_show(value)} and did not raise {test.raises}"
    if _are_alike(codec.to_json(value), test.expect, test.tolerance):
        return ""
    return f"returned {_show(value)}, not {_show(test.expect)}"


def _are_alike(value: Any, expected: Any, tolerance: float) -> bool:
    """Compare numbers within the tolerance, all else exactly. Tuples count as lists."""
    if _is_number(value) and _is_number(expected):
        both_nan = math.isnan(value) and math.isnan(expected)
        return both_nan or bool(value == expected or abs(value - expected) <= tolerance)
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(
            _are_alike(value[name], expected[name], tolerance) for name in expected
        )
    if isinstance(value, list | tuple) and isinstance(expected, list):
        return len(value) == len(expected) and all(
            _are_alike(one, other, tolerance) for one, other in zip(value, expected, strict=True)
        )
    return type(value) is type(expected) and bool(value == expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
