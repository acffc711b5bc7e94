"""The examples of docs/guides/own-benchmark.md are run, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

from assay.benchmarks.own import problems, settings
from assay.data.arguments import BOUNDS
from tests.conftest import Cli, write_completions

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own-benchmark.md"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
GAPS = "```python\ndef largest_gap(n):\n    return max([abs(a - b) for a, b in zip(n, n[1:])] or [0])\n```"  # noqa: E501


def blocks(kind: str) -> list[str]:
    return [text for found, text in FENCED.findall(GUIDE.read_text()) if found == kind]


def write_example(folder: Path) -> Path:
    path = folder / "sums.yaml"
    path.write_text(blocks("yaml")[0])
    return path


def test_the_example_is_short_checked_and_evaluated(assay: Cli, tmp_path: Path) -> None:
    path = write_example(tmp_path)
    assert len(path.read_text().splitlines()) <= 10
    command, *shown, last = blocks("console")[0].splitlines()
    assert command == "$ assay benchmark check ./sums.yaml"
    assert last == "$ assay eval ./sums.yaml --model model.gguf"
    done = assay("benchmark", "check", "./sums.yaml", "--workers", "1")
    assert done.returncode == 0
    assert done.stdout.splitlines() == shown
    answers = write_completions(tmp_path / "answers.jsonl", [("sums/0", GAPS)])
    done = assay("eval", "./sums.yaml", "--model", f"replay:{answers}", "--workers", "1")
    assert done.returncode == 0
    assert re.search(r"pass@1 +100.0 %", done.stdout)


def test_mistakes_are_printed_as_the_page_shows(assay: Cli, tmp_path: Path) -> None:
    path = write_example(tmp_path)
    text = path.read_text().replace("entry_point", "entrypoint").replace("[1, 4, 2]", "x")
    path.write_text(text + "    entry_point: largest_gap\n")
    done = assay("eval", "./sums.yaml")
    assert done.returncode == 2
    command, *shown = blocks("console")[1].splitlines()
    assert command == "$ assay eval ./sums.yaml"
    assert done.stderr.splitlines() == shown


def test_a_file_can_name_another(assay: Cli, tmp_path: Path) -> None:
    (tmp_path / "company.yaml").write_text(blocks("yaml")[1])
    line = '{"prompt": "Write f(x).", "entry_point": "f", "cases": ["f(1) == 2"]}\n'
    (tmp_path / "tasks.jsonl").write_text(line)
    done = assay("benchmarks", "./company.yaml")
    assert "company-tasks" in done.stdout


def test_the_page_lists_every_key() -> None:
    listed = set(re.findall(r"`(\w+)`", GUIDE.read_text()))
    assert {*settings.KEYS, *problems.KEYS, *BOUNDS, *settings.COMPARISONS} <= listed
