"""Test that docs, help texts and errors use plain technical English.

``RETIRED`` has the words and phrases that the project no longer uses, with what to write instead.
``NOT_YET_CONVERTED`` lists places that still have some. Convert one, then delete its line here: the
test reports it as XPASS until you do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from assay.cli.main import cli

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "assay"

COUNTED = "tokens?|samples?|programs?|prompts?|problems?|nats|references"
RETIRED = {
    r"foretell\w*|foretold": "predict",
    r"told": "reported",
    r"mend|mends|mended|mending": "fix",
    r"anew": "again",
    r"beside": "next to, with, before or after",
    r"midst": "middle, during",
    r"begun": "started",
    r"(stands?|put|comes?|follows?) behind": "after",
    r"many as pay|what pays": "chooses automatically",
    r"without a word": "without a response",
    r"let us in": "authentication failed",
    r"(?<!there )(is|are) no (?!longer\b|more\b|less\b)\w+": "is not a",
    r"(?<!there is )no JSON": "not valid JSON",
    rf"({COUNTED}) a (second|problem|task|token)": "per",
    r"the way of|the rooms?|the words": "the industry's heading",
    r"nobody can tell|whoever": "unknown",
    r"pull the plug": "plain statement",
    r"another \w+ than": "a different ... from",
    r"nobody": "no one, or a passive",
    r"of (yours|theirs|ours)": "your own",
    r"(a|an) [\w-]+ of (its|their) own": "a separate, its own",
    r"number formats?": "data type",
    r"cut in half": "cut off",
    r"(run|runs|tests|judged) apart": "in a separate process",
    r"(runs?|tests|counting) goe?s? on|runs go on": "continue, are in progress",
}  # fmt: skip
PATTERNS = {re.compile(rf"\b({old})\b", re.I): new for old, new in RETIRED.items()}

NOT_YET_CONVERTED: set[str] = set()
FRAGMENT = re.compile(r"(Of|What|Where|When|As|With|That|Which|Who|Whose|How|Whether|Why|Those)\b")
MOST_WORDS = 30  # of a sentence in docs: STYLE.md asks for about 25
MOST_MARKS = 2  # colons and semicolons of a sentence

DOCS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {"docs/reference/options.md", "docs/reference/environment.md"}  # of help texts
FENCED = re.compile(r"^(````?)[a-z]*$.*?^\1$", re.M | re.S)
INLINE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?])(?<!et al\.)\s+")


def retired_in(text: str) -> list[str]:
    """Return what is retired in a text, with what to write instead."""
    found = []
    for pattern, instead in PATTERNS.items():
        found += [f"'{match[0]}': write '{instead}'" for match in pattern.finditer(text)]
    return found


def places(names: list[str]) -> list[object]:
    """Return test parameters; those that are not converted yet may fail."""
    mark = pytest.mark.xfail(reason="not converted yet", strict=False)
    return [pytest.param(n, marks=mark if n in NOT_YET_CONVERTED else (), id=n) for n in names]


PAGES = [name for name in (str(path.relative_to(ROOT)) for path in DOCS) if name not in GENERATED]


@pytest.mark.parametrize("name", places(PAGES))
def test_docs_use_plain_words(name: str) -> None:
    text = INLINE.sub("CODE", FENCED.sub("", (ROOT / name).read_text()))
    assert retired_in(text) == []


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page's prose: paragraphs and list items."""
    prose = LINK.sub(r"\1", INLINE.sub("code", FENCED.sub("", text)))
    block: list[str] = []
    for line in [*prose.splitlines(), ""]:
        new = re.match(r"\s*([-*]|\d+\.)\s+", line)
        if new or not line.strip() or line.startswith(("|", "#", "<!--")):
            yield from END.split(" ".join(block)) if block else ()
            block = []
        if line.strip() and not line.startswith(("|", "#", "<!--")):
            block.append(line[new.end() :] if new else line.strip())


@pytest.mark.parametrize("name", places(PAGES))
def test_sentences_of_docs_are_short(name: str) -> None:
    text = (ROOT / name).read_text()
    long = [s for s in sentences(text) if len(s.split()) > MOST_WORDS]
    assert long == []


@pytest.mark.parametrize("name", places(PAGES))
def test_sentences_of_docs_are_not_chains(name: str) -> None:
    text = (ROOT / name).read_text()
    chains = [s for s in sentences(text) if len(re.findall(r"[:;](?=\s|$)", s)) > MOST_MARKS]
    assert chains == []


def help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield the name of every command with its help text and those of its options."""
    options = [p.help or "" for p in command.params if isinstance(p, click.Option)]
    yield name, "\n".join([command.help or "", *options])
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from help_texts(found, f"{name} {inner}")


HELP = dict(help_texts(cli, "assay"))


@pytest.mark.parametrize("name", places(list(HELP)))
def test_help_texts_use_plain_words(name: str) -> None:
    assert retired_in(HELP[name]) == []


def error_texts(path: Path) -> Iterator[str]:
    """Yield the text of every error that a file raises, without the values in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Raise):
            constants = [c.value for c in ast.walk(node) if isinstance(c, ast.Constant)]
            yield "".join(value for value in constants if isinstance(value, str))


MODULES = [path for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"]
PACKAGES = sorted(f"src/assay/{path.stem}" for path in MODULES if path.name[0] != "_")


@pytest.mark.parametrize("name", places(PACKAGES))
def test_errors_use_plain_words(name: str) -> None:
    folder = ROOT / name
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    found = {
        str(path.relative_to(ROOT)): bad
        for path in files
        if (bad := [f"{text}: {one}" for text in error_texts(path) for one in retired_in(text)])
    }
    assert found == {}


def test_docstrings_begin_with_a_verb() -> None:
    """Ruff's D401 knows few words; these openings make a fragment of any sentence."""
    files = [*SOURCE.rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, kinds) and (text := ast.get_docstring(node))
        if FRAGMENT.match(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("how well it foretells a text", "predict"),
        ("results.json is no file", "is not a"),
        ("tokens a second", "per"),
        ("Start anew.", "again"),
        ("Tests run in another process than the program.", "different"),
        ("It runs in a thread of its own.", "separate"),
    ],
)
def test_retired_words_are_found(text: str, expected: str) -> None:
    assert any(expected in found for found in retired_in(text))


@pytest.mark.parametrize(
    "text", ["There is no network.", "It is no longer used.", "besides", "tokens per second"]
)
def test_plain_words_are_not(text: str) -> None:
    assert retired_in(text) == []
