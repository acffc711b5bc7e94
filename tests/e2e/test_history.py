"""``assay history``: filters, columns where runs differ, and files that cannot be read."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.runs.result import SCHEMA
from tests.in_process import run_command
from tests.runs.consistent import make_consistent
from tests.test_protocol import BASE


def write_result(
    folder: Path, day: str, model: str, benchmark: str = "humaneval", **changes: Any
) -> str:
    """Write a results file as another machine could have."""
    run = f"{benchmark}_{day.replace('-', '')}_120000"
    protocol = json.loads(json.dumps({**BASE.to_json(), "benchmark": benchmark}))
    protocol["decoding"] |= changes.get("decoding", {})
    protocol["asking"] |= changes.get("asking", {})
    protocol |= changes.get("judging", {})
    interval = {"low": 0.3, "high": 0.5, "problems": 10}
    problems = [{"task_id": f"t/{i}", "n": 1, "passed": int(i < 4)} for i in range(10)]
    result = {
        "schema": SCHEMA, "benchmark": benchmark, "model": model, "run": run,
        "timestamp": f"{day}T12:00:00+00:00", "protocol": protocol, "problems": problems,
        "results": {"invalid": 0, "pass_at_1": 0.4, "intervals": {"pass_at_1": interval}},
        "model_identity": {
            "engine": changes.get("engine", "gguf"), "prompt_form": "chat",
            "weights_sha256": "ab" * 32, "variant": changes.get("variant", ""),
        },
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / f"{run}.json").write_text(json.dumps(make_consistent(result)))
    return run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    write_result(folder, "2026-01-01", "qwen", decoding={"temperature": 0.8, "top_p": 0.95})
    write_result(folder, "2026-02-01", "Qwen-coder", engine="hf", variant="bfloat16")
    write_result(folder, "2026-03-01", "llama", "mbpp", asking={"prompt_form": "text"})
    return folder


def listed(folder: Path, *arguments: str) -> list[str]:
    done = run_command("history", *arguments, folder=folder.parent)
    assert done.code == 0, done.err
    return done.out.splitlines()


def test_settings_are_listed_where_runs_differ(results: Path) -> None:
    headings, *_, oldest, legend = listed(results)
    assert legend.startswith("unrecorded: ")
    columns = headings.split()
    for name in ("temperature", "top-p", "form", "engine", "format"):
        assert name in columns
    for name in ("n", "strategy", "problems", "weights", "sandbox", "pass@10"):
        assert name not in columns
    assert oldest.split()[3:8] == ["0.8", "0.95", "chat", "gguf", "40.0"]


def test_every_setting_of_a_protocol_can_be_told_apart(results: Path) -> None:
    """Runs that differ in one of these must not have equal rows but for their hashes."""
    unlike = {"min_p": 0.1, "repetition_penalty": 1.2, "max_tokens": 9}
    asked = {"system": "Be brief.", "stop": ["END", "\n\n"], "engine_options": ["n_batch=9"]}
    write_result(results, "2026-04-01", "qwen", decoding=unlike, asking=asked)
    headings, newest, *_ = listed(results)
    for name in ("min-p", "penalty", "max-tokens", "system", "stop", "options"):
        assert name in headings.split()
    for value in (" 0.1 ", " 1.2 ", " 9 ", " Be brief. ", " n_batch=9 "):
        assert value in newest
    assert {"top-k", "seed"}.isdisjoint(headings.split())  # one run alone is not greedy
    sampled = {"temperature": 0.8, "top_p": 0.95, "top_k": 20, "seed": 7}
    write_result(results, "2026-05-01", "qwen", decoding=sampled)
    assert {"top-k", "seed"} <= set(listed(results)[0].split())


def test_the_python_that_judged_is_listed_where_runs_differ(results: Path) -> None:
    assert "python" not in listed(results)[0].split()
    write_result(results, "2026-04-01", "qwen", judging={"python": "cpython 3.12"})
    headings, newest, *_ = listed(results)
    assert "python" in headings.split()
    assert "cpython 3.12" in newest


def test_nobody_knows_how_recorded_completions_were_asked_for(results: Path) -> None:
    """They must not be listed with temperature 0 and top-p 0."""
    run = write_result(results, "2026-04-01", "recorded", decoding={"temperature": 0, "top_p": 0})
    path = results / f"{run}.json"
    content = json.loads(path.read_text())
    content["protocol"]["origin"] = "ef" * 32
    path.write_text(json.dumps(make_consistent(content)))
    newest, *_ = csv.DictReader(io.StringIO("\n".join(listed(results, "--csv"))))
    assert newest["model"] == "recorded"
    known = {name: newest[name] for name in ("temperature", "top-p", "max-tokens", "thinking")}
    assert set(known.values()) == {""}


@pytest.mark.parametrize(
    ("filters", "models"),
    [
        (("--model", "qwen"), ["Qwen-coder", "qwen"]),
        (("--benchmark", "mbpp"), ["llama"]),
        (("--since", "2026-02-01"), ["llama", "Qwen-coder"]),
        (("--model", "QWEN", "--since", "2026-01-15"), ["Qwen-coder"]),
        (("--limit", "1"), ["llama"]),
    ],
)
def test_filters(results: Path, filters: tuple[str, ...], models: list[str]) -> None:
    shown = json.loads("\n".join(listed(results, *filters, "--json")))
    assert [run["model"] for run in shown] == models


def test_filters_that_match_nothing_say_so(results: Path) -> None:
    (line,) = listed(results, "--model", "nobody")
    assert line.startswith("None of the 3 runs in ")


def test_since_a_number_of_days(results: Path) -> None:
    recent = (datetime.now(UTC) - timedelta(days=2)).date().isoformat()
    write_result(results, recent, "new")
    shown = json.loads("\n".join(listed(results, "--since", "7d", "--json")))
    assert [run["model"] for run in shown] == ["new"]


def test_a_wrong_date_is_one_line(results: Path) -> None:
    done = run_command("history", "--since", "yesterday", folder=results.parent)
    assert done.code == 2
    assert done.err.startswith("assay: --since yesterday: is not a date. Give one such as 20")


def test_models_of_one_name_are_told_apart_by_their_weights(results: Path) -> None:
    assert "weights" not in listed(results)[0]
    run = write_result(results, "2026-03-02", "llama")
    path = results / f"{run}.json"
    path.write_text(path.read_text().replace("ab" * 32, "cd" * 32))
    assert "weights" in listed(results)[0]


def test_csv_has_every_column(results: Path) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(listed(results, "--csv")))))
    assert [row["model"] for row in rows] == ["llama", "Qwen-coder", "qwen"]
    assert (rows[2]["pass_at_1"], rows[2]["temperature"], rows[1]["format"]) == (
        "0.4", "0.8", "bfloat16",
    )  # fmt: skip


def test_a_damaged_file_is_one_line_and_not_the_end(results: Path) -> None:
    (results / "mbpp_20260401_120000.json").write_text("{")
    (results / "foreign").mkdir()
    (results / "foreign" / "run.json").write_text("[[")
    done = run_command("history", folder=results.parent)
    assert done.code == 3
    assert len(done.out.splitlines()) == 5  # headings, three runs and a mark
    assert len(done.err.splitlines()) == 2
    assert all(line.startswith("warning: ") for line in done.err.splitlines())
