"""``assay extract``, what a score owes to each rule, truncated answers, all strategies at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import Cli, references, write_completions

SCORED = ("--benchmark", "mini", "--problems", "4")


def chatty(mini: Benchmark) -> list[tuple[str, str]]:
    """References in chat; the first with a demonstration that fails."""
    (task, code), *others = references(mini)[:4]
    demo = f"Sure:\n```python\n{code}\nassert False, 'of the demonstration'\n```\nDone."
    return [(task, demo), *((t, f"<think>Hm.</think>\n{c}") for t, c in others)]


def test_programs_and_explanations(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    texts = chatty(mini)
    samples = write_completions(tmp_path / "s.jsonl", texts)
    shown = assay("extract", samples, "--benchmark", "mini")
    assert shown.returncode == 0, shown.stderr
    assert f"{texts[0][0]} #0  fenced+demo" in shown.stdout
    assert f"{texts[1][0]} #0  thinking" in shown.stdout
    assert "of the demonstration" not in shown.stdout
    explained = assay("extract", samples, "--benchmark", "mini", "--explain").stdout
    assert "demo: code after the function that neither it nor the tests need" in explained
    assert "-assert False, 'of the demonstration'" in explained
    lines = assay("extract", samples, "--benchmark", "mini", "--explain", "--json").stdout
    records = [json.loads(line) for line in lines.splitlines()]
    assert [r["rule"] for r in records] == ["fenced+demo", *["thinking"] * 3]
    assert [step["rule"] for step in records[0]["steps"]] == ["fenced", "demo"]
    assert records[1]["solution"].strip() == texts[1][1].partition("</think>")[2].strip()


def test_lone_surrogates_are_shown_and_exported(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    """Encoding either is a UnicodeEncodeError, which must not end in a traceback."""
    code = f"def {mini.problems[0].tests.entry_point}(x):\n    return '\ud800'\n"
    samples = write_completions(tmp_path / "s.jsonl", [("mini/0", f"\ud800:\n```\n{code}```")])
    for options in ((), ("--explain",)):
        shown = assay("extract", samples, "--benchmark", "mini", *options)
        assert shown.returncode == 0, shown.stderr
        assert r"\ud800" in shown.stdout
    asked = ("score", samples, "--benchmark", "mini", "--task", "mini/0", "--json")
    run = json.loads(assay(*asked).stdout)["run"]
    target = ("--format", "evalplus-folder", "--output", tmp_path / "out")
    assert assay("export", run, *target).returncode == 0
    assert r"\ud800" in (tmp_path / "out" / "mini_0" / "0.py").read_text()


def test_what_was_extracted_can_be_scored(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", chatty(mini))
    made = assay("extract", samples, "--benchmark", "mini", "--json").stdout
    programs = tmp_path / "programs.jsonl"
    programs.write_text(made)
    result = json.loads(assay("score", programs, *SCORED, "--json").stdout)
    assert result["results"]["pass_at_1"] == 1.0


@pytest.mark.slow
def test_what_each_rule_is_good_for(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    samples = write_completions(tmp_path / "s.jsonl", chatty(mini))
    asked = ("score", samples, *SCORED, "--compare-extraction")
    result = json.loads(assay(*asked, "--json").stdout)
    found = {r["rule"]: (r["samples"], r["lost"], r["gained"]) for r in result["extraction"]}
    assert found["demo"] == (1, 1, 0)
    assert found["thinking"][0] == 3
    text = assay(*asked).stdout
    assert "demo             1       1       0" in text


def test_an_answer_that_was_cut_off_says_so(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    (one, right), (two, _) = references(mini)[:2]
    records: list[dict[str, Any]] = [
        {"task_id": one, "text": right, "finish_reason": "length"},
        {"task_id": two, "text": "```python\ndef ", "finish_reason": "length"},
    ]
    samples = tmp_path / "s.jsonl"
    samples.write_text("".join(json.dumps(record) + "\n" for record in records))
    asked = ("score", samples, "--benchmark", "mini", "--problems", "2", "--json")
    result = json.loads(assay(*asked).stdout)
    assert result["results"]["reasons"] == {"passed": 1, "truncated": 1}
    assert result["results"]["truncated"] == 2
    lines = (tmp_path / f"results/{result['run']}/verdicts.jsonl").read_text().splitlines()
    (told,) = (v for v in map(json.loads, lines) if v["status"] == "fail")
    assert told["detail"].startswith("no-code: ")


def test_a_recording_has_no_prompt_strategy(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    model = write_completions(tmp_path / "m.jsonl", references(mini))
    done = assay("eval", "mini", "--model", model, "--prompt-strategy", "all")
    assert (done.returncode, done.stderr) == (
        2, "assay: --prompt-strategy: has no effect on recorded completions. Drop it.\n",
    )  # fmt: skip
