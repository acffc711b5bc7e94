"""Formats of a leaderboard: every name is shown as it is, and nothing in it is executed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from assay.cli.leaderboard import FORMATS
from assay.data.printable import clean_line
from assay.errors import UsageError
from assay.report.leaderboard import (
    Baseline,
    Leaderboard,
    ModelFacts,
    leaderboard,
    renderers,
)
from assay.report.leaderboard.formats.html_page import SCRIPT, STYLE
from assay.report.leaderboard.formats.latex import SPECIAL
from assay.report.leaderboard.formats.text import table_lines
from assay.runs import Environment, ParityGateOutcome
from assay.runs.marks import MARKS, WITHOUT_GPU, MarkName
from assay.runs.result import GroupResult
from assay.scoring import Coverage, Tally, estimates
from assay.types import Decoding
from tests.report.leaderboards import PROBLEMS, make_result
from tests.test_protocol import BASE

ODD_NAMES = [
    "a|b", "<script>alert(1)</script>", "50% & _under_ #1 ~x^2 {y} $z$ \\end", '"quoted", comma',
    "**bold** [link](http://x) `code`", "\x1b[31mred\x1b[0m", "two\nlines\tand tab", "моде́ль 模型",
    "&amp; ]]> --", "=1+1", "- item", "1. first", "![image](x)", "",
]  # fmt: skip
BASELINES = [Baseline("humaneval", "pub|ished", 0.875, "a <paper>")]


def odd_board() -> Leaderboard:
    results = [make_result(name, 10 + number) for number, name in enumerate(ODD_NAMES)]
    facts = {name: ModelFacts(10**9 * (number + 1)) for number, name in enumerate(ODD_NAMES)}
    return leaderboard(
        [*results, make_result("in part", 30, judged=50), make_result("in part", 30, judged=60)],
        facts=facts, baselines=BASELINES, columns=["size", "group"], pareto="size",
        group_models=lambda found: dict.fromkeys(found, "a"),
    )  # fmt: skip


def two_blocks() -> Leaderboard:
    sampled = replace(BASE, decoding=Decoding(temperature=0.8))
    return leaderboard([make_result("a"), make_result("b"), make_result("a", protocol=sampled)])


def shown(board: Leaderboard) -> list[str]:
    """Return the names of a board's models, as readers should see them."""
    return [clean_line(row.model).strip() for row in board.blocks[0].rows]


def test_the_command_offers_every_format() -> None:
    assert sorted(FORMATS) == renderers.names()


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_has_control_characters_and_all_have_every_model(form: str) -> None:
    board = odd_board()
    text = board.render(form)
    assert text.endswith("\n")
    for character in text:
        assert character.isprintable() or character == "\n"
    if form not in ("evalplus", "apr-leaderboard", "latex"):
        assert "in part" in text


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json", "latex", "html"])
def test_several_blocks_are_shown_apart(form: str) -> None:
    one = leaderboard([make_result("a"), make_result("b")]).render(form)
    text = two_blocks().render(form)
    assert len(text) > len(one)
    assert "temperature" in text


@pytest.mark.parametrize("form", ["evalplus", "apr-leaderboard"])
def test_formats_without_a_protocol_hold_one_block(form: str) -> None:
    with pytest.raises(UsageError, match="2 blocks that are not comparable. Choose one with"):
        two_blocks().render(form)


def test_an_unknown_format_is_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match=r"leaderboard format 'xls': unknown.*markdown"):
        two_blocks().render("xls")


def test_the_table_marks_the_best_incomplete_and_foreign_scores() -> None:
    board = leaderboard(
        [make_result("a", 40), make_result("a", 45, day=2), make_result("b", 30),
         make_result("c", 40, judged=50)],
        baselines=BASELINES,
    )  # fmt: skip
    lines = board.render("table").splitlines()
    row = {line.split()[1]: line for line in lines if line[:1] in ("1", "2", "-")}
    assert "*45.0 [" in row["a"]
    assert "(+1)" in row["a"]
    assert "*" not in row["b"]
    assert "80.0 [" in row["c"]
    assert row["c"].endswith(" !partial")
    assert "!" not in row["a"] + row["b"]
    assert row["pub|ished"].split()[2:] == ["(published)", "87.5"]
    assert any(line.startswith("Incomplete") and "50 of 100" in line for line in lines)
    assert sum(line.startswith("!partial: ") for line in lines) == 1
    assert any("a <paper>" in line for line in lines)


def marked_board() -> Leaderboard:
    """All scores are of a CPU; one also has another judge's verdicts, and one is partial."""
    on_cpu = replace(make_result("a"), not_publishable=(f"all {WITHOUT_GPU}",), publishable=False)
    shared = replace(on_cpu.results, integrity={"shared": 1})
    return leaderboard(
        [
            on_cpu,
            replace(on_cpu, model="b", results=shared, run="b"),
            replace(on_cpu, model="c", coverage=make_result("c", judged=50).coverage, run="c"),
        ]
    )


@pytest.mark.parametrize(
    ("form", "own", "shared"),
    [
        ("table", ("] shared-tests", "] !partial"), "no-gpu"),
        ("markdown", ("`shared-tests`", r"**\!partial**"), "no-gpu"),
        ("html", ('<span class="property" title=', '<span class="defect" title='), "no-gpu"),
        ("latex", (r"{\footnotesize shared-{}tests}", r"\textbf{!partial}"), "no-{}gpu"),
    ],
)
def test_marks_that_all_scores_share_are_shown_once_and_defects_stand_out(
    form: str, own: tuple[str, str], shared: str
) -> None:
    text = marked_board().render(form)
    assert text.count(f"all scores: {shared}") == 1
    for mark in own:
        assert text.count(mark) == 1
    meanings = text.replace("-{}", "-").replace("\\", "")
    names: tuple[MarkName, ...] = ("no-gpu", "shared-tests", "partial")
    for name in names:  # the legend has these alone
        assert MARKS[name].meaning.rstrip(".") in meanings
    assert MARKS["served"].meaning not in meanings


def test_the_details_of_defects_are_below_their_block() -> None:
    selected = Coverage(164, PROBLEMS, PROBLEMS, PROBLEMS, PROBLEMS)
    off = Environment(parity_gate=ParityGateOutcome("off"))
    board = leaderboard([make_result("a", coverage=selected), make_result("b", environment=off)])
    lines = board.render("table").splitlines()
    assert "!partial here: 100 of 164 problems were selected." in lines
    assert "!unverified-device here: the parity gate was switched off." in lines


def test_marks_are_data_in_the_other_formats() -> None:
    board = marked_board()
    names = {"a": ["no-gpu"], "b": ["no-gpu", "shared-tests"], "c": ["partial", "no-gpu"]}
    content = json.loads(board.render("json"))
    rows = {row["model"]: row["scores"]["humaneval"] for row in content["blocks"][0]["rows"]}
    assert {model: cell["marks"] for model, cell in rows.items()} == names
    assert {name: mark["kind"] for name, mark in content["marks"].items()} == {
        "partial": "defect", "no-gpu": "property", "shared-tests": "property",
    }  # fmt: skip
    lines = csv.DictReader(io.StringIO(board.render("csv")))
    assert {line["model"]: line["humaneval_marks"].split() for line in lines} == names
    upstream = json.loads(board.render("apr-leaderboard"))
    assert {one["model"]: one["marks"] for one in upstream} == {k: names[k] for k in "ab"}
    evalplus = json.loads(board.render("evalplus"))
    assert {model: one["marks"] for model, one in evalplus.items()} == {**names, "c": []}


def test_a_terminal_shows_defects_in_another_colour() -> None:
    spans = [span for line in table_lines(marked_board()) for span in line]
    assert {span.text: span.colour for span in spans if span.colour} == {
        "all scores: no-gpu": "bright_black", "shared-tests": "bright_black", "!partial": "red",
    }  # fmt: skip


def test_markdown_shows_names_as_they_are() -> None:
    board = odd_board()
    page = MarkdownIt("commonmark").enable(["table"]).render(board.render("markdown"))
    parser = Page()
    parser.feed(page)
    cells = parser.cells
    names = [row[1] for row in cells[1:]]
    assert [name.strip() for name in names] == [*shown(board), "pub|ished (published)"]
    assert {len(row) for row in cells} == {len(cells[0])}
    assert parser.tags <= {
        "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "ul", "li", "hr",
    }  # fmt: skip


class Page(HTMLParser):
    """Collect the cells of a page's tables, and the tags that it has."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.cells: list[list[str]] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick", "onload"}
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1][-1] += data
        else:
            self.texts.append(data)


def test_html_shows_names_as_they_are_and_loads_nothing() -> None:
    board = odd_board()
    text = board.render("html")
    parser = Page()
    parser.feed(text)
    assert [row[1].strip() for row in parser.cells[1:]] == [*shown(board), "pub|ished (published)"]
    assert text.count("<script>") == 1
    assert "default-src &#x27;none&#x27;" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://x", "")
    assert "prefers-color-scheme: dark" in STYLE
    assert "</script" not in SCRIPT


@given(st.text())
def test_any_name_survives_in_html_csv_and_json(name: str) -> None:
    board = leaderboard([make_result(name)])
    expected = clean_line(name)
    parser = Page()
    parser.feed(board.render("html"))
    assert parser.cells[1][1] == clean_line(name, 1000)
    (line,) = csv.DictReader(io.StringIO(board.render("csv")))
    assert line["model"] == expected
    assert json.loads(board.render("json"))["blocks"][0]["rows"][0]["model"] == name


def test_csv_has_numbers_between_0_and_1_and_says_what_is_not_ours() -> None:
    board = odd_board()
    lines = list(csv.DictReader(io.StringIO(board.render("csv"))))
    assert len(lines) == len(ODD_NAMES) + 2
    part = next(line for line in lines if line["model"] == "in part")
    assert part["humaneval_state"] == "incomplete"
    assert part["humaneval_others"] == "1"
    assert part["humaneval_publishable"] == "False"
    assert lines[0]["humaneval_protocol"] == BASE.hash
    assert all(0 <= float(line["humaneval"]) <= 1 for line in lines)
    assert (lines[-1]["kind"], lines[-1]["humaneval"], lines[-1]["source"]) == (
        "baseline", "0.875", "a <paper>",
    )  # fmt: skip


def unescape_latex(text: str) -> str:
    """Return the text that LaTeX sets for an escaped one."""
    text = text.replace(",{},", ",,")
    found, position = "", 0
    by_length = sorted(SPECIAL.items(), key=lambda item: -len(item[1]))
    while position < len(text):
        for plain, escaped in by_length:
            if text.startswith(escaped, position):
                found, position = found + plain, position + len(escaped)
                break
        else:
            assert text[position] not in SPECIAL, text[position:]
            found, position = found + text[position], position + 1
    return found


def test_latex_sets_names_as_they_are() -> None:
    board = odd_board()
    lines = board.render("latex").splitlines()
    start, end = lines.index(r"\midrule"), lines.index(r"\bottomrule")
    rows = [line.removesuffix(r" \\").split(" & ") for line in lines[start + 1 : end]]
    ours = [row for row in rows if row != [r"\midrule"]][: len(board.blocks[0].rows)]
    assert [unescape_latex(row[1]).strip() for row in ours] == shown(board)
    assert sum(cell.startswith(r"\textbf") for row in ours for cell in row) == 1
    assert any(r"\textit{87.5}" in row for row in rows[-1])


def test_latex_has_the_same_number_of_cells_in_all_rows() -> None:
    lines = odd_board().render("latex").splitlines()
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1


def test_evalplus_has_the_fields_of_its_results_json() -> None:
    plus = make_result("org/coder", 60, "humanevalplus")
    base = {e.k: e for e in estimates([Tally(f"T/{i}", 1, int(i < 70)) for i in range(100)])}
    plus = replace(plus, results=replace(plus.results, groups={"base": GroupResult(0.7, base)}))
    results = [plus, make_result("other", 55), make_result("org/coder", 80, "mbpp")]
    facts = {"org/coder": ModelFacts(parameters=1_543_714_304)}
    found = json.loads(leaderboard(results, facts=facts).render("evalplus"))
    assert found["org/coder"] == {
        "link": "",
        "open-data": "NONE",
        "pass@1": {"humaneval": 70.0, "humaneval+": 60.0, "mbpp": None, "mbpp+": None},
        "prompted": True,
        "size": 1.5,
        "marks": [],
    }
    assert found["other"]["pass@1"]["humaneval"] == 55.0
    assert found["other"]["size"] is None


def test_evalplus_has_no_score_of_an_incomplete_run() -> None:
    found = json.loads(leaderboard([make_result("a", 30, judged=50)]).render("evalplus"))
    assert found["a"]["pass@1"]["humaneval"] is None


def test_upstreams_array_has_the_best_run_first() -> None:
    results = [
        make_result("dir/small.apr", 40),
        make_result("b", 60),
        make_result("c", 9, judged=50),
    ]
    found = json.loads(leaderboard(results).render("apr-leaderboard"))
    assert [entry["model"] for entry in found] == ["b", "small"]
    assert found[1] == {
        "benchmark": "humaneval", "model": "small", "strategy": "standard", "pass_at_1": 40.0,
        "passed": 40, "total": 100, "errors": 0, "timestamp": "2026-01-01",
        "file": "humaneval_20260101_000000.json", "marks": [],
    }  # fmt: skip
