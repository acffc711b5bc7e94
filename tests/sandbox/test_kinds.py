"""The kinds of sandbox beside each other: the same programs, the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.sandbox import open_sandbox
from assay.types import Benchmark, Job, Program, Verdict
from plus import Programs, made, recorded
from tests.conftest import Cli
from tests.sandbox.container_engine import OwnEngine

KINDS = ("process", "docker", "wasm")
# Programs that take all memory or all time: which limit is met first depends on the guest.
LIMITS = {"memory", "timeout", "exit"}


def verdicts(kind: str, benchmark: Benchmark, programs: Programs) -> dict[tuple[str, int], Verdict]:
    tests = {p.task_id: p.tests for p in benchmark.problems}
    limits = replace(benchmark.limits, cpu_s=5.0)  # enough in WebAssembly for all that ever end
    jobs = [
        Job(task, sample, Program(code, ""), tests[task], limits) for task, sample, code in programs
    ]
    sandbox = open_sandbox(kind, 2)
    try:
        return {(v.task_id, v.sample): v for v in sandbox.judge(jobs)}
    finally:
        sandbox.close()


@pytest.mark.docker
@pytest.mark.parametrize(
    "samples", [pytest.param(1, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.whole)]
)
@pytest.mark.parametrize("programs", [made, recorded])
def test_the_same_verdicts(
    engine: OwnEngine | None,  # noqa: ARG001 - must run
    humaneval: Benchmark,
    request: pytest.FixtureRequest,
    programs: Callable[[Benchmark, int], Programs],
    samples: int,  # of each problem
) -> None:
    """Right and wrong ones in turn; and those that five models wrote."""
    if programs is recorded:
        request.getfixturevalue("shared_data")
    mixed = programs(humaneval, samples)
    assert len(mixed) == 164 * samples
    found = {kind: verdicts(kind, humaneval, mixed) for kind in KINDS}
    for key, native in found["process"].items():
        for kind in KINDS:
            verdict = found[kind][key]
            assert verdict.status != "invalid", (kind, verdict)  # nor unsupported: none needs more
            assert verdict.status == native.status, (kind, verdict, native)
            if verdict.reason != native.reason:  # one that fails and then never ends is late there
                assert verdict.reason in LIMITS, (kind, verdict, native)
    passed = sum(verdict.status == "pass" for verdict in found["process"].values()) / samples
    assert passed == 82 if programs is made else 25 < passed < 100


@pytest.mark.docker
def test_the_list_shows_all_kinds(engine: OwnEngine | None, assay: Cli) -> None:  # noqa: ARG001
    found = {kind["kind"]: kind for kind in json.loads(assay("sandbox", "list", "--json").stdout)}
    assert set(KINDS) <= found.keys()
    for kind in KINDS:
        assert found[kind]["refusal"] == ""
        assert found[kind]["samples_per_second"] > 1
        assert found[kind]["guarantees"]
        assert found[kind]["gaps"]
    text = assay("sandbox", "list").stdout
    assert "tier container" in text or "tier podman" in text
    assert "tier guest" in text


@pytest.mark.slow
def test_the_list_says_why_a_kind_does_not_work(assay: Cli, tmp_path: Path) -> None:
    missing = {"ASSAY_CONTAINER_ENGINE": str(tmp_path / "docker")}
    done = assay("sandbox", "list", env=missing)
    assert done.returncode == 0
    assert "docker    no: container runtime: " in done.stdout
    assert "process" in done.stdout
