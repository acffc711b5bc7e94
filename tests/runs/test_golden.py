"""The results file stays byte for byte what it was, and so does what commands print of it.

The golden files were written by the version of 2026-11-16, before results had a type. What differs
between two runs or machines is replaced by a placeholder; all keys and their order are compared.
Their time limit was fixed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from assay.data.documents import read_document
from assay.runs import Environment, build_result, open_run, write_result
from assay.scoring import BestOfN, coverage, estimates, group_scores, tally
from assay.scoring.intervals import wilson
from assay.types import Benchmark, Completion, Estimate, Verdict
from tests.in_process import Done, run_command
from tests.runs.test_folder import MODEL
from tests.test_protocol import BASE

GOLDEN = Path(__file__).parent / "golden"
WRONG = "def f(): pass"
# Of what a run on another machine or at another time has otherwise.
VOLATILE = {
    "timestamp", "run", "path", "platform", "machine", "cpus", "python", "assay", "guarantees",
    "gaps", "refused", "tier", "inference_s", "judging_cpu_s", "judging_wall_s", "image",
    "loading_s", "generating_s", "judging_s", "whole_s",
    "interpreter",
}  # fmt: skip

ENVIRONMENTS: list[Any] = [
    {
        "assay": "0.1.0",
        "python": "3.11.2",
        "platform": "Linux",
        "machine": "x86_64",
        "cpus": cpus,
        "engine": {"xllamacpp": "1", "device": "H200", "threads": 8, "left_out": ["seed"]},
        "sandbox": {
            "kind": "process", "tier": "root", "python": "cpython 3.11.2", "guarantees": ["g"],
            "gaps": [], "files": True, "refused": [], "image": "",
        },
        "parity_gate": {
            "state": "passed",
            "device": "H200",
            "agreement": {
                "positions": 9, "cosine_mean": 0.999, "cosine_min": 0.99,
                "max_abs_difference": 0.1, "top1_agreement": 1.0, "kl_mean": 0.0, "kl_max": 0.1,
            },
            "reasons": [],
            "cached": False,
        },
    }
    for cpus in (2, 16)
]  # fmt: skip


def write_samples(mini: Benchmark, path: Path, wrong: Iterable[int]) -> None:
    """Write two samples of each problem: a right one, and one that is right but for some."""
    spoilt = set(wrong)
    lines = []
    for number, problem in enumerate(mini.problems):
        second = WRONG if number in spoilt else f"```python\n{problem.reference}\n```"
        for text in (problem.reference, second):
            lines.append(json.dumps({"task_id": problem.task_id, "solution": text}) + "\n")
    path.write_text("".join(lines))


def masked(value: Any, name: str = "") -> Any:
    """Return the content with placeholders; the protocol's hash depends on the Python version."""
    if isinstance(value, dict):
        return {key: masked(item, key) for key, item in value.items()}
    if isinstance(value, list) and name not in VOLATILE:
        return [masked(item) for item in value]
    return f"<{type(value).__name__}>" if name in VOLATILE or name == "hash" else value


def masked_text(text: str) -> str:
    """Return printed text without names of runs, digests and folders."""
    text = re.sub(r"mini_\d{8}_\d{6}(-\d+)?", "mini_RUN", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", text)
    return re.sub(r"\b[0-9a-f]{12,64}\b", "DIGEST", text)


@pytest.fixture(scope="module")
def folder(mini: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scored files, the first with every check."""
    folder = tmp_path_factory.mktemp("golden")
    write_samples(mini, folder / "samples_a.jsonl", [0, 3])
    write_samples(mini, folder / "samples_b.jsonl", [1, 2, 3])
    for name, more in (
        ("a", ("--check-flaky", "1", "--compare-extraction", "--select", "examples")),
        ("b", ("--problems", "4", "--partial")),
    ):
        command(
            folder, "score", f"samples_{name}.jsonl", "--benchmark", "mini", "--tests-seed",
            "fixed", "--time-limit", "10", "--results-dir", f"results_{name}", *more,
        )  # fmt: skip
    return folder


def command(folder: Path, *arguments: str) -> Done:
    done = run_command(*arguments, folder=folder, seconds=120)
    assert done.code in (0, 3), done.err
    return done


def content(folder: Path, name: str) -> str:
    (path,) = (folder / f"results_{name}").glob("*.json")
    return path.read_text()


def check(name: str, found: str) -> None:
    assert found == (GOLDEN / name).read_text()


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_results_file_has_the_same_bytes(folder: Path, name: str) -> None:
    text = content(folder, name)
    assert text == json.dumps(json.loads(text), indent=2) + "\n"
    check(f"result_{name}.json", json.dumps(masked(json.loads(text)), indent=2) + "\n")


def test_comparison_and_history_are_the_same(folder: Path) -> None:
    files = [str(next((folder / f"results_{name}").glob("*.json"))) for name in "ab"]
    for name, arguments in {
        "compare.json": ("compare", *files, "--force", "--json"),
    }.items():
        check(name, masked_text(command(folder, *arguments).out))
    (listed,) = json.loads(command(folder, "history", "--results-dir", "results_a", "--json").out)
    assert listed == {k: v for k, v in json.loads(content(folder, "a")).items() if k != "problems"}


def build(folder: Path) -> str:
    """Return the results file of a run with all that a run can have but the checks."""
    run = open_run(folder, BASE, MODEL, tests_seed="fixed", selection="[:4]")
    for environment in ENVIRONMENTS:
        run.add_environment(read_document(Environment, environment))
    for number, status in enumerate(("pass", "fail", "invalid", "fail")):
        key = (f"t/{number % 2}", number // 2)
        run.add_completion(Completion(*key, "x", "length", 10, 20 + number, 1500.0, 0, True))
        groups = {"base": (2, 2), "plus": (3 if status == "pass" else 1, 3)}
        reason = {"pass": "passed", "fail": "wrong-answer", "invalid": "unsupported"}[status]
        run.add_verdict(
            Verdict(*key, status, reason, "numpy", "", 0.25, 0.5, 9.0, "separated", "plain", groups)  # type: ignore[arg-type]
        )
    task_ids, verdicts = ["t/0", "t/1"], list(run.verdicts.values())
    tallies = tally(task_ids, verdicts)
    result = build_result(
        run, BASE, tallies, coverage(tallies, 2, 164), estimates(tallies),
        group_scores(task_ids, verdicts, ["base", "plus"]), {"t/9": "timeout: 10 s"}, (1.0, 2.0),
        BestOfN("first", 2, Estimate(1, 0.5, *wilson(0.5, 2), 2), 1, {"t/0": 0, "t/1": 1}),
    )  # fmt: skip
    write_result(result)
    run.close()
    return result.path.read_text()


def test_all_that_a_run_can_have_has_the_same_bytes(tmp_path: Path) -> None:
    text = build(tmp_path)
    found = json.loads(text)
    assert text == json.dumps(found, indent=2) + "\n"
    found |= {"timestamp": "", "run": ""}
    check("result_all.json", json.dumps(found, indent=2) + "\n")
