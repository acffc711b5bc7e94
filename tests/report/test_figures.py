"""``--plot``: from results to files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from assay import api, runs
from assay.errors import RunError, UsageError
from assay.report import figures
from assay.report.leaderboard import ModelFacts
from assay.runs import RunEntry
from assay.runs import write_result as save_result
from tests.conftest import Cli
from tests.e2e.test_history import write_result
from tests.report.leaderboards import make_result
from tests.runs.consistent import agree

PNG = b"\x89PNG\r\n\x1a\n"


def entry(name: str, passed: int, day: int, benchmark: str = "humaneval") -> RunEntry:
    found = make_result(name, passed, benchmark, day=day)
    return RunEntry(
        found.run, benchmark, name, found.timestamp, "", found.model_identity, found.protocol, found
    )


def test_a_comparison_shows_its_interval_and_decision() -> None:
    first, second = make_result("base", 50), make_result("tuned", 90, day=2)
    found = runs.compare(first, second)
    svg = figures.draw_comparison(found, first, second).standalone()
    assert "tuned compared with base on humaneval" in svg
    low, high = 100 * found.interval.low, 100 * found.interval.high
    assert f"+40.0 [+{low:.1f}, +{high:.1f}]" in svg
    assert ">better<" in svg


def test_a_family_has_a_row_per_run_with_names_that_differ() -> None:
    results = [make_result("base", 50), *(make_result("tuned", 50 + n, day=n) for n in (2, 3))]
    found = runs.compare_family(results[0], results[1:])
    svg = figures.draw_family(found, results).embed()
    for result in results[1:]:
        assert f"tuned ({result.run})" in svg
    assert "97.5 % intervals" in figures.draw_family(found, results).subtitle


def test_a_leaderboard_shows_problems_by_model() -> None:
    board = api.leaderboard([make_result("weak", 20), make_result("strong", 80)])
    svg = figures.draw_board(board).embed()
    assert "Heat map of 100 problems by 2 models. Every model solves 20, no model 20." in svg
    assert svg.index(">strong<") < svg.index(">weak<")


def test_a_leaderboard_shows_quality_by_size() -> None:
    board = api.leaderboard(
        [make_result("weak", 20), make_result("strong", 80), make_result("huge", 70)],
        pareto="size",
        facts={
            "weak": ModelFacts(file_bytes=10**8),
            "strong": ModelFacts(file_bytes=10**9),
            "huge": ModelFacts(file_bytes=10**10),
        },
    )
    drawing = figures.draw_board(board)
    assert "strong: 80.0 %" in drawing.description
    assert drawing.description.count("not beaten") == 2
    assert ">huge<" in drawing.body


def test_a_trade_off_without_sizes_is_an_error() -> None:
    board = api.leaderboard([make_result("weak", 20)], pareto="speed")
    with pytest.raises(UsageError, match="no model has both a score and speed"):
        figures.draw_board(board)


def test_the_history_joins_runs_of_one_protocol() -> None:
    found = figures.draw_runs([entry("a", 40, 1), entry("a", 60, 3), entry("b", 50, 2)])
    assert "a: 40.0 % to 60.0 % in 2 runs; b: 50.0 % to 50.0 % in 1 run" in found.description
    assert "humaneval" in found.title


def test_the_history_of_several_benchmarks_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"several benchmarks \(humaneval, mbpp\)"):
        figures.draw_runs([entry("a", 40, 1), entry("a", 60, 3, "mbpp")])


def test_the_history_without_a_score_is_an_error() -> None:
    with pytest.raises(UsageError, match="no run has a score"):
        figures.draw_runs([])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for day, model in (("2026-01-01", "qwen"), ("2026-02-01", "llama")):
        write_result(tmp_path / "results", day, model)
    return tmp_path / "results"


def test_a_command_writes_svg(assay: Cli, results: Path) -> None:
    done = assay("history", "--plot", "history.svg")
    assert done.returncode == 0, done.stderr
    root = ET.parse(results.parent / "history.svg").getroot()
    assert "qwen" in "".join(root.itertext())


def test_a_command_writes_png(assay: Cli, results: Path) -> None:
    done = assay("history", "--plot", "history.png")
    assert done.returncode == 0, done.stderr
    content = (results.parent / "history.png").read_bytes()
    assert content.startswith(PNG)
    assert int.from_bytes(content[16:20], "big") == 2 * (720 + 2 * 16)


@pytest.fixture
def judged(tmp_path: Path) -> list[str]:
    """Write results files with problems, and return the names of their runs."""
    (tmp_path / "results").mkdir()
    for day, passed in enumerate((40, 60, 90), 1):
        result = make_result(f"model-{day}", passed, day=day)
        save_result(agree(replace(result, path=tmp_path / "results" / result.path.name)))
    return [f"humaneval_202601{day:02d}_000000" for day in (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "content"),
    [
        (["compare", "A", "B"], "model-2 compared with model-1 on humaneval"),
        (["compare", "A", "B", "C"], "Differences in pass@1 to model-1"),
        (["leaderboard"], "Heat map of 100 problems by 3 models"),
        (["leaderboard", "--pareto", "run-speed"], "Quality by run-speed on humaneval"),
    ],
)
def test_commands_draw_what_they_print(
    assay: Cli, judged: list[str], tmp_path: Path, arguments: list[str], content: str
) -> None:
    names = dict(zip("ABC", judged, strict=True))
    done = assay(*(names.get(one, one) for one in arguments), "--plot", "plot.svg")
    assert done.returncode == 0, done.stderr
    assert content in (tmp_path / "plot.svg").read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plot.pdf", "plot.pdf: is not a plot file. Give a name that ends with .svg or .png."),
        ("nowhere/plot.svg", "nowhere: is not a folder. Create it, or choose another place."),
    ],
)
def test_a_plot_file_is_checked_before_any_work(assay: Cli, name: str, message: str) -> None:
    done = assay("compare", "a", "b", "--plot", name)
    assert done.returncode == 2
    assert done.stderr == f"assay: {message}\n"


def test_png_without_its_package_is_one_line(
    assay: Cli, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = assay("history", "--results-dir", results, "--plot", "history.png")
    assert done.returncode == 2
    assert "pip install 'assay-eval[report]'" in done.stderr
    assert assay("history", "--plot", "history.svg").returncode == 0


def test_png_without_fonts_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(figures, "FONT", "no such font")
    monkeypatch.setattr(figures, "_render", lambda svg: b"the same for every text")
    with pytest.raises(RunError, match="no fonts"):
        figures.write_plot(tmp_path / "a.png", figures.draw_runs([entry("a", 40, 1)]))
