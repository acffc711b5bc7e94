"""Test that links resolve and that console examples name commands and options that exist."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import click
import pytest

from assay import benchmarks, prompts, selection
from assay.cli.main import cli
from assay.extract import extraction_rules
from assay.types import Problem

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
FENCED = re.compile(r"^(````?)(\w*)\n(.*?)^\1$", re.M | re.S)
LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)
CODE_FILE = re.compile(r"`(?:python )?([a-z][a-z_.]*/[\w/.-]+\.(?:py|yaml|txt))\b[^`\n]*`")
FOLDERS = (ROOT, ROOT / "src", ROOT / "src" / "assay")  # that files are named from
SHELL = {"console", "sh", "bash", "shell"}
ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def slugs(page: Path) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", page.read_text())):
        text = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        slug = text.strip().replace(" ", "-")
        number = sum(
            re.fullmatch(rf"{re.escape(slug)}(-\d+)?", known) is not None for known in found
        )
        found.add(f"{slug}-{number}" if number else slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} does not exist"
        assert not anchor or anchor in slugs(there), f"{target} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # about earlier versions
        return
    for name in CODE_FILE.findall(FENCED.sub("", page.read_text())):
        assert any((folder / name).exists() for folder in FOLDERS), name


def test_the_index_lists_every_page() -> None:
    folder = ROOT / "docs"
    links = LINK.findall((folder / "index.md").read_text())
    linked = {(folder / link.partition("#")[0]).resolve() for link in links}
    assert {page for page in folder.rglob("*.md") if page.name != "index.md"} <= linked


def commands(page: Path) -> list[str]:
    """Return the command lines of a page's console examples, without comments."""
    found: list[str] = []
    for _, kind, block in FENCED.findall(page.read_text()):
        if kind not in SHELL:
            continue
        lines = block.replace("\\\n", " ").splitlines()
        prompted = [line for line in lines if line.startswith(("$ ", "> "))]
        found += [line[2:] for line in prompted] if kind == "console" else lines
    return found


def split(line: str) -> list[list[str]]:
    """Return the words of every simple command of a line."""
    parser = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    parser.whitespace_split, parser.commenters = True, "#"
    simple: list[list[str]] = [[]]
    for word in parser:
        if set(word) <= set(";|&"):
            simple.append([])
        else:
            simple[-1].append(word)
    return simple


def check_assay(words: list[str]) -> None:
    """Parse an ``assay`` command as the command line would, without running it."""
    command: click.Command = cli
    context = click.Context(cli, info_name="assay")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        inner = command.get_command(context, words[0])
        assert inner is not None, f"no command {words[0]}"
        command, words = inner, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    if {"--help", "--version", "-h"} & set(words):
        return
    values, rest, _ = command.make_parser(context).parse_args(words)
    assert rest == [], f"too many arguments: {rest}"
    for parameter in command.params:
        given = values.get(parameter.name or "")
        present = isinstance(given, str | tuple) and bool(given)
        assert present or not parameter.required, f"{parameter.name} is missing"
        if isinstance(parameter.type, click.Choice) and isinstance(given, str):
            assert "$" in given or given in parameter.type.choices, f"{parameter.name}: {given}"


def check_make(words: list[str]) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for word in words:
        if not ASSIGNMENT.fullmatch(word):
            assert word in targets, f"no make target {word}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_console_examples_can_be_parsed(page: Path) -> None:
    for line in commands(page):
        for words in split(line):
            while words and (ASSIGNMENT.fullmatch(words[0]) or words[0] in {"do", "then", "time"}):
                words.pop(0)
            if words[:1] == ["assay"]:
                redirected = next((i for i, w in enumerate(words) if set(w) <= {"<", ">"}), None)
                check_assay(words[1:redirected])
            elif words[:1] == ["make"]:
                check_make(words[1:])
            elif words[:1] == ["python"] and words[1].endswith(".py"):
                assert (ROOT / words[1]).exists(), words[1]


def test_a_wrong_example_is_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        check_assay(["eval", "humaneval", "--modell", "x"])
    with pytest.raises(AssertionError, match="no command"):
        check_assay(["evaluate"])
    with pytest.raises(AssertionError, match="device"):
        check_assay(["eval", "mini", "--device", "tpu"])


def test_the_plug_in_examples_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    added_to = (benchmarks.benchmarks, prompts.strategies, selection.methods, extraction_rules)
    for registry in added_to:
        registry.names()  # loads the plug-ins before what the examples add is taken away again
        monkeypatch.setattr(registry, "_items", dict(vars(registry)["_items"]))
    page = ROOT / "docs" / "guides" / "extending.md"
    blocks = [block for _, kind, block in FENCED.findall(page.read_text()) if kind == "python"]
    assert len(blocks) == 5
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert capsys.readouterr().out == "pass passed\n"
    assert prompts.strategies.get("short").build(toy_problem(), "chat").messages
    assert "last" in selection.methods.names()
    assert "greeting" in extraction_rules.names()


def test_the_picture_is_complete_and_loads_nothing() -> None:
    path = ROOT / "docs" / "images" / "eval.svg"
    text = "".join(ElementTree.parse(path).getroot().itertext()).replace("\xa0", " ")
    assert "$ assay eval mini" in text
    assert re.search(r"pass@1 +\d+\.\d %", text)
    assert "url(http" not in path.read_text()


def toy_problem() -> Problem:
    return benchmarks.load("toy").problems[0]
