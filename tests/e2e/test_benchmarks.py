"""``assay benchmarks``: every benchmark, and where its data is."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from assay.benchmarks import Description, benchmarks, load
from assay.datasets.catalogue import check_data
from assay.datasets.pinned import HUMANEVAL
from assay.pipeline.suite.suite import expand_suites
from assay.types import Benchmark
from tests.in_process import run_command

COLUMNS = ["group", "benchmark", "problems", "licence", "programs can import", "data"]


def rows(folder: Path, env: dict[str, str], *options: str | Path) -> dict[str, dict[str, Any]]:
    done = run_command("benchmarks", "--json", *options, folder=folder, env=env)
    assert (done.code, done.err) == (0, "")
    return {row["name"]: row for row in json.loads(done.out)}


def test_every_benchmark_has_a_description_with_a_licence() -> None:
    for name in benchmarks.names():
        about = benchmarks.describe(name)
        assert about is not None, name
        assert about.licence, name
        assert about.problems > 0, name


def test_the_table_has_a_line_for_every_benchmark(
    tmp_path: Path, nothing: dict[str, str], folder: Path
) -> None:
    done = run_command("benchmarks", "--data", folder, folder=tmp_path, env=nothing)
    assert (done.code, done.err) == (0, "")
    heading, *lines = done.out.splitlines()
    suites = [line for line in lines if line.startswith("suite ")]
    assert lines[-len(suites) :] == suites
    assert suites[0] == "suite core: humanevalplus, mbppplus"
    assert [line.split(":")[0] for line in suites] == ["suite core", "suite fresh", "suite full"]
    lines = lines[: -len(suites)]
    starts = [heading.index(column) for column in COLUMNS]
    cells = [
        [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        for line in lines
    ]
    assert sorted(name for _, name, *_ in cells) == benchmarks.names()
    assert [group for group, *_ in cells] == sorted(group for group, *_ in cells)
    assert {group for group, name, *_ in cells if name.startswith("cruxeval")} == {"reasoning"}
    found = {name: rest for _, name, *rest in cells}
    path = folder / HUMANEVAL.path
    assert found["humaneval"] == ["164", "MIT", "standard library", f"{path} (sha256 verified)"]
    assert found["mini"] == ["20", "Apache-2.0", "standard library", "part of the package"]
    assert found["bigcodebench-hard-instruct"] == [
        "148", "Apache-2.0", "environment bigcodebench", "downloaded on first use",
    ]  # fmt: skip


def test_as_json(tmp_path: Path, nothing: dict[str, str], folder: Path) -> None:
    found = rows(tmp_path, nothing, "--data", folder)
    assert list(found) == benchmarks.names()
    assert found["humaneval"] == {
        "name": "humaneval", "problems": 164, "licence": "MIT", "environment": "",
        "version": "1.0.3", "sha256": HUMANEVAL.sha256, "data": "verified",
        "path": str(folder / HUMANEVAL.path), "detail": "", "group": "functions", "suites": [],
        "description": "",
    }  # fmt: skip
    assert (found["mbpp"]["data"], found["mbpp"]["path"]) == ("not-here", None)
    assert (found["mini"]["data"], found["mini"]["sha256"]) == ("built-in", None)


def test_a_damaged_file_is_reported_with_what_to_do(
    tmp_path: Path, nothing: dict[str, str], folder: Path
) -> None:
    path = folder / HUMANEVAL.path
    path.write_bytes(path.read_bytes()[:-100])
    found = rows(tmp_path, nothing, "--data", folder)["humaneval"]
    assert (found["data"], found["path"]) == ("damaged", str(path))
    assert "is damaged or another version" in found["detail"]
    done = run_command("benchmarks", "--data", folder, folder=tmp_path, env=nothing)
    assert found["detail"] in done.out

    (folder / "missing").mkdir()
    env = {**nothing, "ASSAY_MBPP_PATH": str(folder / "missing")}
    assert rows(tmp_path, env)["mbpp-train"]["detail"].startswith("ASSAY_MBPP_PATH: ")


def test_a_users_benchmark_is_listed(
    tmp_path: Path, nothing: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_announce: object, _data_dir: Path | None) -> Benchmark:
        raise AssertionError("a list loads no problems")

    monkeypatch.setattr(benchmarks, "_items", {**benchmarks._items})
    monkeypatch.setattr(benchmarks, "_descriptions", {**benchmarks._descriptions})
    benchmarks.register("bare")(load)
    benchmarks.register("toy", Description(3, package_licence="MIT", environment="toys"))(load)
    found = rows(tmp_path, nothing)
    assert (found["bare"]["problems"], found["bare"]["data"]) == (None, "unknown")
    assert (found["toy"]["problems"], found["toy"]["licence"]) == (3, "MIT")
    done = run_command("benchmarks", folder=tmp_path, env=nothing)
    lines = {line.split()[1]: line.split()[2:] for line in done.out.splitlines()}
    assert lines["bare"] == ["unknown"] * 4
    assert lines["toy"] == ["3", "MIT", "environment", "toys", "part", "of", "the", "package"]


def test_the_released_file_is_recognised_without_parsing_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.datasets.records.parse_json", lambda *_, **__: 1 / 0)
    assert check_data(HUMANEVAL, folder).state == "ok"


def test_the_list_takes_less_than_a_second(tmp_path: Path) -> None:
    begun = time.process_time()
    assert run_command("benchmarks", folder=tmp_path).code == 0
    assert time.process_time() - begun < 1


def test_suites_stand_for_their_benchmarks() -> None:
    suites = benchmarks.suites()
    assert set(suites["fresh"]) < set(suites["full"])
    assert set(suites["core"]) < set(suites["full"])
    assert expand_suites(["mini", "core", "mbppplus"]) == ("mini", "humanevalplus", "mbppplus")
    assert not set(suites) & set(benchmarks.names())


@pytest.mark.slow
def test_a_suite_is_evaluated_by_its_name(tmp_path: Path) -> None:
    for name in ("humanevalplus", "mbppplus"):
        load(name)
    done = run_command(
        "eval", "core", "--model", "replay:missing.jsonl", "--problems", "1", folder=tmp_path
    )
    assert done.code == 2
    assert "missing.jsonl" in done.err
    (tmp_path / "s.yaml").write_text("models: [default]\nbenchmarks: [core, benchmark: mini]\n")
    done = run_command("suite", "s.yaml", "--dry-run", "--problems", "1", folder=tmp_path)
    assert done.code == 0, done.err
    assert all(f" {name}" in done.out for name in ("humanevalplus", "mbppplus", "mini"))
