"""Pages of a report: what they say, where their data is, and that nothing breaks out of them."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.data.failures import explain_failure
from assay.errors import RunError, UsageError
from assay.progress import Silent
from assay.report.pages import ReportSite, open_sources, render_document
from assay.report.pages.markup import could_show, join_key, probability, signed
from assay.report.pages.run.outcomes import CallOutcome, complete_test, find_expected, find_outcome
from assay.report.pages.site import build_report
from assay.report.text import duration
from assay.runs.marks import MARKS
from assay.runs.stores.suites import (
    SuiteBaseline,
    SuiteRecord,
    SuiteRow,
    Target,
    suite_path,
    write_suite,
)
from assay.types import Verdict
from tests.in_process import run_command
from tests.report.measurements import DOCUMENTS, write_measurements
from tests.report.run_folders import hostile_samples, sample, toy_samples, write_run
from tests.runs.test_result import content_of
from tests.test_protocol import BASE

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "base"}


class Structure(HTMLParser):
    """Collect the elements of a document, and check that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.problems: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def parse(document: str) -> Structure:
    found = Structure()
    found.feed(document)
    found.close()
    return found


def unpack(document: str) -> dict[str, Any]:
    """Return the data of a document by name."""
    found = re.findall(r'data-block="([^"]*)">([^<]*)</script>', document)
    return {
        html.unescape(name): json.loads(gzip.decompress(base64.b64decode(data)))
        for name, data in found
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a results folder with two runs of one benchmark and one of another."""
    folder = tmp_path / "results"
    write_run(folder, toy_samples((1, 3)), model="model-a")
    write_run(folder, toy_samples((3, 4, 5)), model="model-b")
    write_run(folder, toy_samples((2,), n=3), model="model-a", name="other", n_samples=3)
    return folder


def open_site(folder: Path) -> ReportSite:
    return ReportSite(open_sources([], folder))


def key_of(site: ReportSite, kind: str, *words: str) -> str:
    """Return the key of the only page of a kind whose title has these words."""
    found = [
        link.key
        for link in site.list_pages()
        if link.key.startswith(f"{kind}/")
        and all(word in f"{link.title} {link.group}" for word in words)
    ]
    assert len(found) == 1, found
    return found[0]


def test_a_document_is_well_formed_and_has_every_page(results: Path) -> None:
    document = build_report([], results_dir=results)
    found = parse(document)
    assert found.problems == []
    assert found.open == []
    ids = [str(attributes["id"]) for _, attributes in found.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in open_site(results).list_pages():
        assert link.key in ids


def test_links_lead_to_pages_that_exist(results: Path) -> None:
    found = parse(build_report([], results_dir=results))
    ids = {attributes.get("id") for _, attributes in found.seen}
    targets = {str(a["href"])[1:] for tag, a in found.seen if tag == "a" and a.get("href")}
    assert targets <= {str(one) for one in ids}


def test_no_address_leaves_the_document(results: Path) -> None:
    found = parse(build_report([], results_dir=results))
    for tag, attributes in found.seen:
        assert tag not in ("img", "iframe", "object", "link", "base", "form"), tag
        for name in ("src", "href", "action", "data", "style", "onclick", "onload"):
            value = attributes.get(name)
            assert value is None or (name == "href" and value.startswith("#")), (tag, name, value)


def test_main_numbers_are_readable_without_a_script(results: Path) -> None:
    text = " ".join(parse(build_report([], results_dir=results)).text)
    for words in ("66.7", "50.0", "model-a", "model-b", "Verdicts by reason", "Leaderboard"):
        assert words in text


def test_data_is_the_same_as_the_samples(results: Path) -> None:
    document = build_report([], results_dir=results)
    data = unpack(document)
    site = open_site(results)
    key = key_of(site, "run", "model-b")
    index, texts = data[key], data[f"{key}/texts/0"]
    assert index["tasks"] == [f"toy/{n}" for n in range(6)]
    status = index["words"]["status"]
    passed = [status["of"][at] == "pass" for at in status["at"]]
    assert passed == [True, True, True, False, False, False]
    found = texts["toy/3"]["samples"][0]
    assert found["expected"] == "2"
    assert found["actual"] == "3"
    assert found["program"] == "def f3(x):\n    return x + 0\n"
    assert found["answer"].startswith("Here it is")


def test_identical_programs_of_a_problem_are_grouped(results: Path) -> None:
    site = open_site(results)
    index = site.block(key_of(site, "run", "model-a", "other"))
    assert index["numbers"]["group"][:3] == [0, 1, 0]
    assert index["counts"] == [3] * 6


def test_a_comparison_says_what_changed(results: Path) -> None:
    site = open_site(results)
    key = key_of(site, "compare", "model-b", "model-a")
    block = site.block(key)
    assert block["gained"] == ["toy/1"]
    assert block["lost"] == ["toy/4", "toy/5"]
    page = site.section(key).html
    assert "model-b passes 1 problem that model-a fails, and fails 2 that model-a passes" in page
    assert "neither a difference nor equivalence is shown" in page


def test_a_server_gets_the_same_sections_and_data(results: Path) -> None:
    site = open_site(results)
    document = render_document([site.section("overview")], site.list_pages(), None, title="x")
    assert 'data-source="api"' in document
    assert set(unpack(document)) == {"licences", "links"}
    for link in site.list_pages():
        section = site.section(link.key)
        assert section.key == link.key
        for name in section.blocks:
            assert site.block(name)


@pytest.mark.parametrize(
    "key", ["", "run", "run/none", "run/a/b", "compare/x/y", "model/x", "../etc", "board/x"]
)
def test_unknown_pages_are_refused(results: Path, key: str) -> None:
    with pytest.raises(UsageError):
        open_site(results).section(key)


@pytest.mark.parametrize("name", ["", "links", "run/none", "run/none/texts/0", "run/a/texts/-1"])
def test_unknown_data_is_refused(results: Path, name: str) -> None:
    with pytest.raises(UsageError):
        open_site(results).block(name)


def test_texts_are_split_so_that_a_sample_opens_fast(tmp_path: Path) -> None:
    samples = [sample(f"toy/{n}", answer="x" * 30_000) for n in range(60)]
    write_run(tmp_path, samples)
    site = open_site(tmp_path)
    names = [name for name in site.list_blocks(key_of(site, "run")) if "texts" in name]
    assert len(names) > 5
    tasks = [task for name in names for task in site.block(name)]
    assert tasks == [f"toy/{n}" for n in range(60)]


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    write_run(tmp_path, hostile_samples(), model="<script>alert(1)</script>\u202e", name="toy")
    document = build_report([], results_dir=tmp_path, title="</title><script>bad</script>")
    found = parse(document)
    assert found.problems == []
    assert sum(tag == "script" for tag, _ in found.seen) == document.count("<script")
    assert "alert(1)</script>" not in document
    assert not any("\u202e" in text for text in found.text)
    for tag, attributes in found.seen:
        assert tag != "img"
        assert not any(name.startswith("on") for name in attributes)
    document.encode()  # lone surrogates would fail here
    data = unpack(document)
    texts = next(v for k, v in data.items() if "texts" in k)
    assert "</script>" in texts["toy/script<b>\u202e"]["samples"][0]["answer"]


def test_an_unfinished_run_is_shown(tmp_path: Path) -> None:
    write_run(tmp_path, toy_samples(), finished=False)
    document = build_report([], results_dir=tmp_path)
    assert "This run is not finished" in document
    assert ">unfinished<" in document


def test_runs_of_the_same_name_have_pages_of_their_own(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_run(tmp_path / folder, toy_samples(), model=folder)
    first = next((tmp_path / "one").glob("toy_*.json")).stem
    second = next((tmp_path / "two").glob("toy_*.json")).stem
    for path in (tmp_path / "two").glob(f"{second}*"):
        path.rename(path.with_name(path.name.replace(second, first)))
    file = tmp_path / "two" / f"{first}.json"
    file.write_text(file.read_text().replace(second, first))
    site = ReportSite(open_sources([str(tmp_path / "one"), str(tmp_path / "two")], tmp_path))
    keys = [link.key for link in site.list_pages() if link.key.startswith("run/")]
    assert sorted(keys) == sorted({join_key("run", first), join_key("run", f"{first}~2")})
    assert {site.section(key).title for key in keys} == {"one on toy", "two on toy"}


def test_a_damaged_file_costs_only_itself(results: Path) -> None:
    (results / "broken_20260101_000000.json").write_text("{")
    (results / "perplexity.json").write_text("[1, 2")
    (results / "suites").mkdir()
    (results / "suites" / "nightly.json").write_text("{}")
    notes: list[str] = []
    found = open_sources([], results, notes.append)
    assert len(found.runs) == 3
    assert any("broken" in note for note in notes)
    assert any("nightly.json" in note for note in notes)


def test_a_damaged_run_costs_only_its_page(results: Path) -> None:
    folder = next(path for path in results.glob("other_*") if path.is_dir())
    (folder / "verdicts.jsonl").write_text('{"task_id": 1}\n{}\n')
    notes: list[str] = []

    class Notes(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    document = build_report([], results_dir=results, reporter=Notes())
    pages = re.findall(r'<section class="page" id="([^"]+)"', document)
    assert sum(page.startswith("run/") for page in pages) == 2
    assert any("verdicts.jsonl line 1: damaged" in note for note in notes)


def test_a_result_without_its_folder_is_shown(results: Path) -> None:
    for path in results.glob("other_*"):
        if path.is_dir():
            shutil.rmtree(path)
    document = build_report([], results_dir=results)
    index = next(v for k, v in unpack(document).items() if k.startswith("run/other"))
    assert index["tasks"] == []
    assert "The run's folder is missing." in index["prompt_note"]


def test_results_files_with_everything_are_shown(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "all")):
        run = f"mini_2026010{number}_000000"
        (tmp_path / f"{run}.json").write_text(json.dumps({**content_of(name), "run": run}))
    document = build_report([], results_dir=tmp_path)
    assert parse(document).problems == []
    assert document.count('<section class="page" id="run/') == 3


def test_a_suite_is_found_by_its_name(results: Path) -> None:
    runs = sorted(path.stem for path in results.glob("toy_*.json"))
    rows = (
        SuiteRow("model-a", "toy", "standard", "greedy", "complete", runs[0]),
        SuiteRow("model-x", "toy", "standard", "greedy", "failed", error="<b>no file</b>"),
    )
    baselines = (SuiteBaseline("toy", "published-model", 0.8, source="a paper"),)
    write_suite(
        suite_path(results, "nightly"),
        SuiteRecord("nightly", "now", rows, (Target("toy", 0.9),), baselines),
    )
    site = ReportSite(open_sources(["nightly"], results))
    assert [run.key for run in site.sources.runs] == [runs[0]]
    overview = site.section("overview").html
    assert "Suite nightly" in overview
    assert "&lt;b&gt;no file&lt;/b&gt;" in overview
    board = site.section("board").html
    assert "published-model (published)" in board
    assert "target of nightly (target)" in board


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_measurements_have_pages(kind: str, tmp_path: Path) -> None:
    write_measurements(tmp_path)
    site = ReportSite(open_sources([str(tmp_path / f"{kind}.json")], tmp_path))
    (link,) = [link for link in site.list_pages() if link.key.startswith("model/")]
    page = site.section(link.key).html
    assert parse(page).problems == []
    words = {
        "perplexity": "22.200", "bench": "With 8 sequences at once, each with a prompt of 128 tok",
        "parity": "1 of 2 thresholds are met", "check": "1 of 3 stages pass",
        "qa": "1 of 2 questions are GO in the tier release",
    }  # fmt: skip
    assert words[kind] in page
    finding = {
        "perplexity": "22.200", "bench": "113 tokens/s", "parity": "NO-GO", "check": "not sound",
        "qa": "INCONCLUSIVE",
    }  # fmt: skip
    assert finding[kind] in site.section("overview").html


def test_nothing_to_show_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no runs"):
        build_report([], results_dir=tmp_path / "empty")
    with pytest.raises(RunError, match="no such result"):
        build_report(["nothing"], results_dir=tmp_path)


def test_the_command_writes_one_file(results: Path, tmp_path: Path) -> None:
    output = tmp_path / "mine.html"
    done = run_command(
        "report", "--results-dir", str(results), "--output", str(output), "--title", "My title",
        folder=tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert str(output) in done.out
    assert "<title>My title</title>" in output.read_text()


def test_a_run_can_be_named(results: Path, tmp_path: Path) -> None:
    name = next(results.glob("other_*.json")).stem
    written = assay.write_report(name, tmp_path / "one.html", results_dir=results)
    pages = re.findall(r'<section class="page" id="([^"]+)"', written.read_text())
    assert [page for page in pages if page.startswith("run/")] == [f"run/{name}"]
    result = assay.load_run(name, results)
    again = assay.write_report([result], tmp_path / "two.html")
    assert again.read_bytes() == written.read_bytes()


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("assert f(1) == [2, 3]", "[2, 3]"),
        ("assert f('a == b') == 'c == d', 'message'", "'c == d'"),
        ("assert f(1) is None", "None"),
        ("assert f(1) != 2", ""),
        ("assert 1 < f(1) < 2", ""),
        ("x = f(1) == 2", ""),
        ("assert f(1) == [", ""),
        ("assert f(\x00) == 1", ""),
        ("assert " + "(" * 3000 + "1" + ")" * 3000 + " == 1", ""),
        ("assert f(1) == 1" * 1000, ""),
    ],
)
def test_expected_values_are_read_from_tests(test: str, expected: str) -> None:
    assert find_expected(test) == expected


def test_outcomes_are_of_failures_only() -> None:
    test = "assert f(1) == 2"
    failed = Verdict("t", 0, "fail", "wrong-answer", "AssertionError", test)
    failed = replace(failed, call="f(1)", actual="3")
    assert find_outcome(failed) == CallOutcome(test, "f(1)", "2", "3")
    assert find_outcome(replace(failed, status="pass", failing_test="")) == CallOutcome()
    other = replace(failed, reason="exception", detail="ValueError: no")
    assert find_outcome(other) == CallOutcome(test, "f(1)")
    of_cases = replace(failed, failing_test="f(0)", call="f(0)", expected="'0'", actual="', got '")
    assert find_outcome(of_cases) == CallOutcome("f(0)", "f(0)", "'0'", "', got '")
    script = replace(of_cases, failing_test="case 1: '1'", call=None, input="1")
    assert find_outcome(script) == CallOutcome("case 1: '1'", None, "'0'", "', got '", input="1")
    alike = replace(of_cases, expected="[…]", actual="[…]", difference="at [9]: 1, 2")
    assert find_outcome(alike).difference == "at [9]: 1, 2"
    raised = replace(other, failing_test="case 1: '1'", call=None, input="1")
    assert find_outcome(raised) == CallOutcome("case 1: '1'", input="1")


def test_words_of_a_verdict_are_not_taken_for_values() -> None:
    """Earlier versions wrote such words. They are shown as they are."""
    old = Verdict("t", 0, "fail", "wrong-answer", "expected '0', got ''", "f(0)")
    assert find_outcome(old) == CallOutcome("f(0)")
    assert explain_failure(old) == old.detail


def test_a_test_of_several_lines_is_shown_whole() -> None:
    tests = "def check(f):\n    assert f(1) == 2\n    assert f(2) == [\n        3,\n    ]\n"
    assert complete_test("assert f(2) == [", tests) == "assert f(2) == [\n    3,\n]"
    assert find_expected(complete_test("assert f(2) == [", tests)) == "[\n    3,\n]"
    assert complete_test("assert f(1) == 2", tests) == "assert f(1) == 2"
    assert complete_test("assert f(3) == [", tests) == "assert f(3) == ["
    assert complete_test("assert f(2) == [", "not ( python") == "assert f(2) == ["


def test_figures_in_words() -> None:
    assert signed(-0.0123) == "\N{MINUS SIGN}1.2"
    assert signed(0.0001) == "0.0"
    assert probability(5e-12).startswith("5.0")
    assert probability(0.5) == "0.50"
    assert duration(0.02) == "20 ms"
    assert duration(5000) == "83 min"
    assert "too few" in could_show(3)
    assert "80 % power" in could_show(164)


def test_protocols_that_differ_are_said(tmp_path: Path) -> None:
    write_run(tmp_path, toy_samples(), model="a")
    write_run(
        tmp_path, toy_samples((0,)), model="b", protocol=replace(BASE, prompt_strategy="scot")
    )
    site = open_site(tmp_path)
    page = site.section(key_of(site, "compare")).html
    assert "The protocols differ" in page
    assert "prompt_strategy: standard / scot" in page


def test_marks_are_on_every_page_and_defects_stand_out(tmp_path: Path) -> None:
    """The overview marks every kind of defect, not incomplete runs alone."""
    write_run(tmp_path, toy_samples(), model="whole")
    damaged = [*toy_samples(problems=5), sample("toy/5", status="invalid", reason="sandbox-error")]
    write_run(tmp_path, damaged, model="damaged")
    site = open_site(tmp_path)
    defect, property_ = (f'<span class="tag {kind}"' for kind in ("defect", "property"))
    run = key_of(site, "run", "damaged")
    for key in ("overview", "board", key_of(site, "compare")):
        page = site.section(key).html
        assert defect in page
        assert property_ in page
        for name in ("partial", "invalid", "no-gpu"):
            assert MARKS[name].meaning in html.unescape(page)
        assert MARKS["served"].meaning not in html.unescape(page)
    page = site.section(run).html
    assert '<li class="mark bad"><strong>!invalid</strong> 1 of 6 samples' in page
    assert '<li class="mark soft"><strong>no-gpu</strong> All completions' in page
    assert page.index("!partial") < page.index("!invalid") < page.index("no-gpu")
    assert "All scores: " in site.section("board").html
