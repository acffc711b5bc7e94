"""Results folders with very many runs: every file is read once, and again only if it changes."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.data.reading import FileReader
from assay.report.pages import ReportSite, RunSource, Sources, open_sources
from assay.report.pages.overview_page import MOST_LISTED
from assay.report.view.live import LiveSite
from assay.runs import list_runs
from tests.report.run_folders import toy_samples, write_run
from tests.runs.consistent import make_consistent


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for number in range(6):
        write_run(tmp_path, toy_samples((number,)), model=f"model-{number}", name=f"b{number % 2}")
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of all JSON files that are read, as they are read."""
    names: list[str] = []
    read_json = FileReader.read_json

    def noting(self: FileReader, path: Path) -> object:
        names.append(path.name)
        return read_json(self, path)

    monkeypatch.setattr(FileReader, "read_json", noting)
    return names


def test_a_finished_run_is_one_file(results: Path, read: list[str]) -> None:
    write_run(results, toy_samples(), model="unfinished", finished=False)
    read.clear()
    assert len(list_runs(results)) == 7
    assert sorted(read).count("run.json") == 1
    assert len(read) == 6 + 2  # results, and of the unfinished run its model and its protocol


def test_results_are_not_taken_for_measurements(results: Path, read: list[str]) -> None:
    open_sources([], results)
    assert len(read) == len(set(read)) == 6


def test_only_what_changes_is_read_again(results: Path, read: list[str]) -> None:
    site = LiveSite(results)
    assert len(site.links()) > 6
    read.clear()
    changed, removed, *_ = sorted(results.glob("*.json"))
    content = json.loads(changed.read_text())
    changed.write_text(json.dumps(make_consistent({**content, "model": "renamed"})))
    removed.unlink()
    site.poll()
    assert read == [changed.name, "run.json", "protocol.json"]
    overview = site.section("overview").html
    assert "renamed" in overview
    assert "unfinished" in overview
    damaged = changed.with_name("b0_20260101_000000.json")
    damaged.write_text("{")
    for _ in range(2):
        damaged.touch()
        site.poll()
    assert read.count(damaged.name) >= 2  # what cannot be read may be half-written
    assert read.count(changed.name) == 1


def test_pairs_are_those_of_one_benchmark_in_their_order(results: Path) -> None:
    sources = open_sources([], results)
    finished = list(reversed(sources.runs))
    expected = [
        (a.key, b.key)
        for a, b in itertools.combinations(finished, 2)
        if a.entry.benchmark == b.entry.benchmark
    ]
    assert [(a.key, b.key) for a, b in ReportSite(sources).list_pairs()] == expected
    assert len(expected) == 6


def test_the_overview_of_thousands_of_runs_compares_few(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = open_sources([], results).runs[0]
    many = tuple(rename(one, f"run-{number}") for number in range(3_000))
    compared = 0

    def count(*_: object) -> bool:
        nonlocal compared
        compared += 1
        return True

    monkeypatch.setattr("assay.report.pages.site.share_problems", count)
    site = ReportSite(Sources(many))
    html = site.section("overview").html
    site.list_pages()
    assert "And more pairs." in html
    assert compared <= 2 * MOST_LISTED + 2


def rename(run: RunSource, key: str) -> RunSource:
    return replace(run, key=key)
