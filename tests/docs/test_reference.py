"""Test that the reference pages say what the code does: options, variables, reasons, keys."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from assay.cli._output import INCOMPLETE
from assay.cli.check import UNSOUND
from assay.cli.data import DAMAGED
from assay.cli.main import FAILURE, INTERRUPTED
from assay.datasets.catalogue import data_files
from assay.extract import extraction_rules
from assay.models import backends
from assay.pipeline import ProblemSelection, ScoreConfig, score
from assay.progress import Silent
from assay.prompts import strategies
from assay.protocol import PromptSettings, Protocol
from assay.quality.decision import EXIT_CODES
from assay.runs.marks import MARKS
from assay.runs.results import render_result
from assay.sandbox.selftest.attacks import BATTERY
from assay.selection import methods
from assay.types import Benchmark, Completion, Decoding, ModelIdentity, Verdict
from tests.conftest import references, write_completions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "assay"
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^(````?)[a-z]*$.*?^\1$", re.M | re.S)
VARIABLE = re.compile(r"ASSAY_[A-Z0-9_]*[A-Z0-9]")
# Named in the source, set by the self-test for itself.
INTERNAL_VARIABLES = {"ASSAY_CANARY"}
INTERPRETER_CALLS = {"fail": 0, "_failed": 0, "invalid": 1, "_verdict": 2, "Extraction": 1}


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@pytest.mark.parametrize("name", GENERATOR.PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    committed = (DOCS / "reference" / name).read_text()
    assert committed == GENERATOR.PAGES[name](), "run `python docs/make_reference.py`"


@pytest.mark.slow
def test_every_variable_of_the_source_is_on_the_page() -> None:
    listed = set(CODE.findall((DOCS / "reference" / "environment.md").read_text()))
    named = {variable for text in strings_of_source() for variable in VARIABLE.findall(text)}
    generic = {"ASSAY_DATA_DIR"} | {v for v in named if v.endswith("_")}
    assert named - generic - INTERNAL_VARIABLES <= listed
    assert {name for name in listed if VARIABLE.fullmatch(name)} >= set(GENERATOR.OTHER_VARIABLES)
    assert set(GENERATOR.OTHER_VARIABLES) <= named


@functools.cache
def parse_source() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


@functools.cache
def strings_of_source() -> frozenset[str]:
    return frozenset(text for tree in parse_source().values() for text in strings(tree))


def strings(tree: ast.Module) -> Iterator[str]:
    """Yield the string constants of a file that are not docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


def rows(page: Path) -> list[list[str]]:
    """Return the cells of all table rows of a page, without headings."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not set(row[0]) <= {"-"}]


def documented_reasons() -> dict[str, str]:
    found = rows(DOCS / "reference" / "reasons.md")[1:]
    return {row[1].strip("`"): row[0] for row in found}


def reasons_in_source() -> set[str]:
    """Return the reasons that the source gives to verdicts, by the places where it does so."""
    found: set[str] = set()
    for path, tree in parse_source().items():
        if "selftest" not in path.parts:
            found |= {reason for node in ast.walk(tree) for reason in reasons_of(node)}
    return found


def reasons_of(node: ast.AST) -> Iterator[str]:
    values: list[ast.expr] = []
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else name
        position = INTERPRETER_CALLS.get(name, len(node.args))
        values = [*node.args[position : position + 1]]
        values += [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        values = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "reason"]
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        names = [e.id for e in node.targets[0].elts if isinstance(e, ast.Name)]
        if names[:1] == ["reason"] and isinstance(node.value, ast.Tuple):
            values = node.value.elts[:1]
    for value in values:
        branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        for branch in branches:
            if isinstance(branch, ast.Constant) and isinstance(branch.value, str) and branch.value:
                yield branch.value


def test_every_reason_of_the_source_is_on_the_page() -> None:
    assert reasons_in_source() <= set(documented_reasons())


def test_the_page_has_no_other_reasons() -> None:
    assert set(documented_reasons()) <= strings_of_source()
    assert set(documented_reasons().values()) == {"pass", "fail", "invalid"}


def keys(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of all keys of a result that have fixed names."""
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        yield f"{prefix}{name}"
        if name in ("config", "results", "coverage", "timing", "model_identity", "best_of_n"):
            yield from keys(inner, f"{prefix}{name}.")


@pytest.fixture(scope="module")
def result(mini: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the result of a real run with two samples per problem and a choice among them."""
    folder = tmp_path_factory.mktemp("keys")
    samples = references(mini)[:4]
    path = write_completions(folder / "samples.jsonl", [*samples, *samples])
    config = ScoreConfig(
        "mini", folder / "results", samples_file=str(path), select="first",
        problems=ProblemSelection("4"),
    )  # fmt: skip
    found: dict[str, Any] = render_result(score(config, Silent()))
    return found


def named_in(page: str) -> set[str]:
    """Return the names in backticks on a page, outside of fenced blocks."""
    return set(CODE.findall(FENCED.sub("", (DOCS / page).read_text())))


def documented_keys() -> set[str]:
    return {
        name for row in rows(DOCS / "results.md") for cell in row for name in CODE.findall(cell)
    }


def test_every_key_of_a_result_is_documented(result: dict[str, Any]) -> None:
    last = {name.rpartition(".")[2] for name in keys(result)}
    named = {part for name in documented_keys() for part in re.split(r"[.\[\]<>]+", name)}
    assert last - {"pass_at_2"} <= named


def test_the_table_of_marks_is_that_of_the_code() -> None:
    section = (DOCS / "results.md").read_text().partition("### Marks")[2].partition("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    assert lines == [
        f"| `{name}` | {mark.kind} | {'no' if mark.blocks else 'yes'} | {mark.meaning} |"
        for name, mark in MARKS.items()
    ]


def test_every_documented_key_is_in_a_result(result: dict[str, Any]) -> None:
    """Names in the first column of the result's table are keys, of a kind that this run has."""
    section = (DOCS / "results.md").read_text().partition("## The result")[2].partition("\n### ")[0]
    first = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")][2:]
    optional = {
        "flaky", "extraction", "cross_check", "sequential", "pass_at_10", "pass_at_100",
        "left_out_as_failed", "groups.<name>", "intervals.pass_at_k", "breakdowns", "measures",
        "infilling",
    }  # fmt: skip
    for name in (name for cell in first for name in CODE.findall(cell)):
        short = name.removeprefix("results.").removesuffix("[]")
        if short not in optional:
            assert short in result or short in result["results"], name


@pytest.mark.parametrize("kind", [Completion, Verdict, Decoding, PromptSettings, ModelIdentity])
def test_fields_of_stored_types_are_documented(kind: type) -> None:
    named = named_in("results.md")
    assert {field.name for field in fields(kind)} <= named


def test_fields_of_the_protocol_are_documented() -> None:
    assert {field.name for field in fields(Protocol)} <= named_in("results.md")


def first_column(page: str, heading: str) -> set[str]:
    """Return the names in backticks in the first column of the table that has this heading."""
    lines = (DOCS / page).read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    names: set[str] = set()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        names |= set(CODE.findall(line.split("|")[1]))
    return names


@pytest.mark.parametrize(
    ("page", "heading", "names"),
    [
        ("models.md", "engine", backends.names()),
        ("prompts.md", "strategy", strategies.names()),
        ("best-of-n.md", "method", methods.names()),
        ("extraction.md", "rule", extraction_rules.names()),
        ("benchmarks.md", "name", data_files.names()),
    ],
)
def test_tables_list_every_plug_in(page: str, heading: str, names: list[str]) -> None:
    assert first_column(page, heading) == set(names)


def test_the_table_of_data_files_has_their_versions() -> None:
    listed = {row[0].strip("`"): row[1:4] for row in rows(DOCS / "benchmarks.md") if len(row) == 5}
    for name in data_files.names():
        file = data_files.get(name)
        assert listed[name] == [file.version, str(file.records), file.licence]


def test_the_readme_is_short_and_answers_in_order() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 120
    assert re.findall(r"^## (.*)$", text, re.M) == [
        "Two commands", "What they print", "Your own model", "Compare two runs", "How fast",
        "How safe", "Documentation",
    ]  # fmt: skip
    assert f"{len(BATTERY)} attacks" in text


def test_exit_codes_are_those_of_the_code() -> None:
    listed = {row[0] for row in rows(DOCS / "reference" / "exit-codes.md")[1:]}
    used = {FAILURE, INTERRUPTED, INCOMPLETE, UNSOUND, DAMAGED, *EXIT_CODES.values()}
    assert listed == {"0", *map(str, used)}
