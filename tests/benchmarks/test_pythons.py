"""References pass on every Python that judges, except for those that the docs list."""

from __future__ import annotations

from pathlib import Path

import pytest

import assay
from assay import benchmarks
from assay.benchmarks import load
from assay.errors import SandboxError
from assay.sandbox.environments.interpreters import choose
from assay.types import Benchmark

VERSIONS = ("3.11", "3.12", "3.13")
# Upstream compares floats by ==, with what ``sum`` gave before Python 3.12.
FAILS_SINCE_3_12 = {"mbpp-pro": {"MbppPro/36", "MbppPro/117", "MbppPro/260"}}
DOCS = Path(__file__).parents[2] / "docs" / "judging-python.md"


def failures(name: str, version: str, task_ids: set[str] | None = None) -> dict[str, str]:
    """Return why the references of a benchmark, or of some tasks, fail on a Python."""
    try:
        choose(version)
    except SandboxError as error:
        pytest.skip(f"needs Python {version}: {error}")
    whole = load(name)
    problems = tuple(p for p in whole.problems if task_ids is None or p.task_id in task_ids)
    selected = Benchmark(
        name, whole.version, whole.data_sha256, problems, whole.limits, imports=whole.imports
    )
    with assay.Judge(selected, workers=2, python=version) as judge:
        return judge.unscorable


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name", ["humanevalplus", "humanevalplus-mini", "evoeval-verbose", "evoeval-concise"]
)
def test_a_zero_is_as_good_as_the_reference_allows(name: str, version: str) -> None:
    """Accurate sums show that the last digits of a steep polynomial's zero matter."""
    assert failures(name, version, {"HumanEval/32"}) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_floats_that_upstream_compares_exactly(version: str) -> None:
    found = failures("mbpp-pro", version, FAILS_SINCE_3_12["mbpp-pro"])
    assert found.keys() == (FAILS_SINCE_3_12["mbpp-pro"] if version != "3.11" else set())
    if version != "3.11":  # both values can be read, with all digits
        assert "gave 2.82842712474619 (assert" in found["MbppPro/117"]
        assert "2.8284271247461903" in found["MbppPro/117"]
    for task_id in FAILS_SINCE_3_12["mbpp-pro"]:
        assert f"`{task_id}`" in DOCS.read_text()


@pytest.mark.whole
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", benchmarks.benchmarks.names())
def test_references_pass_on_every_python(name: str, version: str) -> None:
    description = benchmarks.benchmarks.describe(name)
    if description and description.environment:  # some of them have data that users must get
        pytest.skip(f"{name} has no Python but that of its environment")
    wrong = FAILS_SINCE_3_12.get(name, set()) if version != "3.11" else set()
    assert failures(name, version).keys() == wrong
