"""The project's contracts, and the runner itself: what it must find broken, and refuse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.errors import ContractError
from assay.quality.contracts.execution import contract_files, execute, load
from tests.conftest import Cli

ROOT = Path(__file__).parents[2]
CONTRACTS = load(contract_files())

SOUND: dict[str, Any] = {
    "contract": "root",
    "subject": "math:sqrt",
    "domain": {"x": {"from": 0, "to": 20}, "y": [0.25, 2, 1e6]},
    "obligations": [
        {"id": "inverse", "statement": "squared", "holds": "isclose(f(x * y) ** 2, x * y)"},
        {"id": "positive", "statement": "no root is below 0", "holds": "f(x) >= 0"},
    ],
    "falsification_tests": [
        {"id": "two", "given": [2], "expect": 1.41421, "tolerance": 1e-5},
        {"id": "below", "given": [-1.0], "raises": "ValueError"},
    ],
    "wrong_subjects": [
        {"id": "negative", "subject": "lambda x: -f(x)", "breaks": ["positive", "two"]},
        {"id": "itself", "subject": "lambda x: x", "breaks": ["inverse", "below"]},
    ],
}


def written(folder: Path, *contracts: dict[str, Any]) -> Path:
    path = folder / "some.yaml"
    path.write_text(yaml.safe_dump_all(contracts))
    return path


def broken(folder: Path, **changes: Any) -> dict[str, str]:
    """Ids of what is broken in the sound contract with these changes, and why."""
    (contract,) = load([written(folder, {**SOUND, **changes})])
    return {check.id: check.detail for check in execute(contract) if not check.ok}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_contract_holds(contract: Any) -> None:
    checks = list(execute(contract))
    assert len(contract.terms.obligations) >= 3
    assert len(contract.terms.falsification_tests) >= 3
    assert [check for check in checks if not check.ok] == []


def test_every_file_of_the_folder_is_executed() -> None:
    files = {path.name for path in (ROOT / "contracts").iterdir()}
    assert {contract.file for contract in CONTRACTS} == files
    assert {"pass-at-k.yaml", "throughput.yaml"} <= files


def test_a_sound_contract_holds_for_all_combinations(tmp_path: Path) -> None:
    (contract,) = load([written(tmp_path, SOUND)])
    assert len(contract.cases) == 21 * 3
    assert broken(tmp_path) == {}


def test_a_domain_is_narrowed_or_listed(tmp_path: Path) -> None:
    (narrowed,) = load([written(tmp_path, {**SOUND, "where": "x > y and x <= 2"})])
    assert list(narrowed.cases) == [{"x": 1, "y": 0.25}, {"x": 2, "y": 0.25}]
    cases = [{"x": 1, "y": 2}, {"x": 4, "y": 9}]
    (listed,) = load([written(tmp_path, {**SOUND, "domain": cases})])
    assert list(listed.cases) == cases


@pytest.mark.parametrize(
    ("subject", "ids"),
    [
        ("math:fabs", {"inverse", "two", "below"}),
        ("math:exp", {"inverse", "two", "below"}),
        ("math:floor", {"inverse", "two", "below"}),
        ("math:cbrt", {"inverse", "two", "below"}),
        ("math:sin", {"inverse", "positive", "two", "below"}),
    ],
)
def test_another_function_breaks_it(tmp_path: Path, subject: str, ids: set[str]) -> None:
    assert ids <= broken(tmp_path, subject=subject).keys()


def test_a_counterexample_is_shown(tmp_path: Path) -> None:
    obligation = {"id": "positive", "statement": "", "holds": "f(x) < 3"}
    found = broken(tmp_path, obligations=[SOUND["obligations"][0], obligation])
    assert found["positive"] == "does not hold for {'x': 9, 'y': 0.25}"
    obligation = {"id": "positive", "statement": "", "holds": "f(x - 1) >= 0"}
    found = broken(tmp_path, obligations=[SOUND["obligations"][0], obligation])
    assert found["positive"].startswith("for {'x': 0, 'y': 0.25}: ValueError(")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("lambda x: f(x)", "does not break positive, two"),
        ("lambda x: abs(f(x)) + 1", "does not break positive"),
        ("lambda: 0", "fails in another way: TypeError("),  # it would break everything
        ("lambda x: 1 / 0", "fails in another way: ZeroDivisionError("),
        ("nothing", "fails in another way: NameError("),
    ],
)
def test_a_wrong_subject_must_break_what_it_names(tmp_path: Path, wrong: str, why: str) -> None:
    changed = {**SOUND["wrong_subjects"][0], "subject": wrong}
    found = broken(tmp_path, wrong_subjects=[changed, SOUND["wrong_subjects"][1]])
    assert list(found) == ["negative"]
    assert found["negative"].startswith(why)


def test_what_nothing_breaks_is_called_broken(tmp_path: Path) -> None:
    always = {"id": "always", "statement": "can never fail", "holds": "f(x) == f(x)"}
    found = broken(tmp_path, obligations=[*SOUND["obligations"], always])
    assert found == {"always": "no wrong subject shows that it can fail"}


@pytest.mark.parametrize(
    ("expect", "given", "ok"),
    [
        ([1, [2.0, "a"]], "[1, [2, 'a']]", True),
        ([1, 2], "(1, 2 + 1e-13)", True),
        ([1, 2], "[1]", False),
        ({"a": 1}, "{'a': 1.0}", True),
        ({"a": 1}, "{'a': 1, 'b': 2}", False),
        (float("nan"), "float('nan')", True),
        (float("inf"), "float('inf')", True),
        (float("inf"), "-float('inf')", False),
        (float("nan"), "1.0", False),
        (1, "True", False),
        (None, "None", True),
        (None, "0", False),
        ("1", "1", False),
    ],
)
def test_what_counts_as_the_expected(tmp_path: Path, expect: Any, given: str, ok: bool) -> None:
    wrong = {"id": "other", "subject": "lambda x: 'another'", "breaks": ["same"]}
    contract = {
        **SOUND,
        "subject": "builtins:eval",
        "domain": {"x": ["1"]},
        "obligations": [{"id": "runs", "statement": "", "holds": "f(x) == 1"}],
        "falsification_tests": [{"id": "same", "given": [given], "expect": expect}],
        "wrong_subjects": [{**wrong, "breaks": ["same", "runs"]}],
    }
    (loaded,) = load([written(tmp_path, contract)])
    assert {check.id: check.ok for check in execute(loaded)} == {
        "runs": True, "same": ok, "other": True,
    }  # fmt: skip


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in SOUND.items() if name != field}


def with_test(**fields: Any) -> dict[str, Any]:
    return {**SOUND, "falsification_tests": [{"id": "two", "given": [2], **fields}]}


@pytest.mark.parametrize(
    ("contract", "why"),
    [
        (["a list"], "expected an object, found list"),
        (without("subject"), "field 'subject' is missing"),
        (without("obligations"), "field 'obligations' is missing"),
        ({**SOUND, "obligations": []}, "obligations must be a list with at least one entry"),
        (without("wrong_subjects"), "field 'wrong_subjects' is missing"),
        ({**SOUND, "subject": "math:nothing"}, "unknown subject math:nothing"),
        ({**SOUND, "subject": "nowhere:f"}, "unknown subject nowhere:f"),
        ({**SOUND, "subject": "math:pi"}, "math:pi is not a function"),
        ({**SOUND, "domian": {}}, "unknown field 'domian'"),
        ({**SOUND, "domain": {"x": 3}}, "the domain of x must be a list or {from: 1, to: 9}"),
        ({**SOUND, "domain": {"x": {"from": 1, "to": 10**9}}}, "more than 1000000 combinations"),
        ({**SOUND, "domain": {"x": [], "y": [1]}}, "the domain is empty"),
        ({**SOUND, "domain": {"f": [1]}}, "f is the subject"),
        ({**SOUND, "where": "x > 100"}, "the domain is empty"),
        ({**SOUND, "where": "z > 1"}, "where fails for {'x': 0, 'y': 0.25}: NameError"),
        ({**SOUND, "where": "x >"}, "'x >' is not an expression"),
        (with_test(), "two: give one of expect and raises"),
        (with_test(expect=1, raises="ValueError"), "two: give one of expect and raises"),
        (
            with_test(expect=1, tolerance="small"),
            "field 'tolerance' has an unexpected value 'small'",
        ),
        (with_test(expect=1, given=2), "given must hold the arguments"),
        (with_test(expect=1, expects=2), "unknown field 'expects'"),
        ({**SOUND, "obligations": SOUND["obligations"] * 2}, "inverse is defined twice"),
        (
            {**SOUND, "wrong_subjects": [{"id": "w", "subject": "f", "breaks": ["lost"]}]},
            "w breaks lost, which does not exist",
        ),
        ({**SOUND, "wrong_subjects": [{"id": "w", "subject": "f"}]}, "field 'breaks' is missing"),
    ],
)
def test_what_is_no_contract_is_refused(tmp_path: Path, contract: Any, why: str) -> None:
    path = written(tmp_path, contract)
    with pytest.raises(ContractError) as refusal:
        [list(execute(loaded)) for loaded in load([path])]
    assert why in str(refusal.value)
    assert "some.yaml" in str(refusal.value)


def test_files_that_are_no_contracts_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, SOUND, SOUND)
    with pytest.raises(ContractError, match="contract root: defined twice"):
        load([path])
    path.write_text("a: [1")
    with pytest.raises(ContractError, match="is not valid YAML"):
        load([path])
    path.write_text("# nothing\n")
    with pytest.raises(ContractError, match="has no contract"):
        load([path])
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ContractError, match="is not UTF-8"):
        load([path])


def test_the_command(assay: Cli, tmp_path: Path) -> None:
    done = assay("contracts")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *lines, last = done.stdout.splitlines()
    checks = sum(len(list(execute(contract))) for contract in CONTRACTS)
    assert last == f"{len(CONTRACTS)} contracts, {checks} checks, 0 broken"
    assert len(lines) == checks + 1
    told = json.loads(assay("contracts", "--json").stdout)
    assert [c["contract"] for c in told["contracts"]] == [c.name for c in CONTRACTS]
    assert (len(told["checks"]), told["broken"]) == (checks, 0)

    path = written(tmp_path, {**SOUND, "subject": "math:fabs"})
    done = assay("contracts", path)
    assert done.returncode == 2
    assert "broken  returned 2.0, not 1.41421" in done.stdout
    assert done.stderr.startswith(
        "assay: contracts: 3 checks failed. The first is root, inverse: does not hold for "
    )
    done = assay("contracts", path, "--json")
    assert done.returncode == 2
    by_id = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert (by_id["two"]["ok"], by_id["positive"]["ok"]) == (False, True)
    done = assay("contracts", tmp_path / "none.yaml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_an_installed_package_has_them(tmp_path: Path) -> None:
    """Put together as the wheel is, and far from the checkout."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, tmp_path / Path(package).name)
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, tmp_path / target)
    done = subprocess.run(
        [sys.executable, "-m", "assay", "contracts", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["contracts"]) == len(CONTRACTS)
    shutil.rmtree(tmp_path / "assay" / "contracts")
    done = subprocess.run(
        [sys.executable, "-m", "assay", "contracts"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "contracts: missing" in done.stderr
