"""Nothing that comes from elsewhere can control the terminal, or fake a line of output.

Without ``assay.data.printable``, these texts print raw control characters, and those that are
not valid Unicode end in a traceback.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import pty
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.cli import main
from assay.datasets.pinned import HUMANEVAL
from assay.types import Benchmark
from tests.conftest import ASSAY, broken, write_completions
from tests.models.faulty_server import serving
from tests.models.small_models import write_small
from tests.runs.consistent import make_consistent, rehash
from tests.runs.test_reading import RESULT

# Recolours, retitles and clears; C1 and DEL; reverses; hides; fakes a line; is not Unicode.
ESCAPES = "\x1b[31m\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x08\u202e\u2066\u200b\ufeff\u2028"
HOSTILE = f"{ESCAPES}\r\n\tassay: all is well\ud800"
FILE_NAME = f"{ESCAPES}\r\n\tassay: all is well".encode() + b"\xff"
ARGUMENT = os.fsdecode(FILE_NAME)
CLI = Path(__file__).parents[2] / "src" / "assay" / "cli"

Walk = Callable[..., tuple[int, str]]


def harmful(text: str) -> set[str]:
    """All but newlines that a terminal would obey, or not show."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {c for c in text if c != "\n" and unicodedata.category(c) in kinds}


@pytest.fixture
def walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Walk:
    """Runs a command in this process and checks all that it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # Ctrl-C stays pytest's

    def run(*arguments: str | Path) -> tuple[int, str]:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["assay", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = (part.decode() for part in capfdbinary.readouterr())
        assert not harmful(out + err), (out, err)
        assert not any(line.startswith("assay: all") for line in (out + err).splitlines())
        assert "Traceback" not in err
        assert isinstance(left.value.code, int)
        return left.value.code, out + err

    return run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder of somebody else's."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    for day, passed in ((1, 1), (2, 0)):
        result = copy.deepcopy(RESULT)
        name = f"mini_2026010{day}_000000"
        result |= {"model": HOSTILE, "benchmark": HOSTILE, "run": name}
        result["problems"] = [{"task_id": f"t{HOSTILE}", "n": 1, "passed": passed}]
        result["protocol"]["prompt_strategy"] = HOSTILE
        result["protocol"]["python"] = HOSTILE
        result["results"]["pass_at_1"] = passed
        (folder / f"{name}.json").write_text(json.dumps(make_consistent(result)))
    return folder


def test_history(walk: Walk, results: Path) -> None:
    code, text = walk("history", "--results-dir", results)
    assert code == 0
    assert len(text.splitlines()) == 4  # a heading, a line per run, and a mark
    assert r"\x1b[31m" in text
    code, text = walk("history", "--results-dir", results, "--json")
    assert json.loads(text)[0]["model"] == HOSTILE


def test_compare(walk: Walk, results: Path) -> None:
    names = sorted(path.stem for path in results.glob("*.json"))
    code, text = walk("compare", *names, "--results-dir", results, "--force")
    assert (code, len(text.splitlines())) == (0, 8)
    other = json.loads((results / f"{names[1]}.json").read_text())
    other["protocol"][f"x{HOSTILE}"] = other["protocol"]["split"] = HOSTILE
    other["protocol"] = rehash(other["protocol"])
    (results / f"{names[1]}.json").write_text(json.dumps(other))
    assert walk("compare", *names, "--results-dir", results)[0] == 2
    code, text = walk("compare", *names, "--results-dir", results, "--force")
    assert (code, len(text.splitlines())) == (0, 9)


def test_eval_and_score_of_a_file_with_a_hostile_name(
    walk: Walk, mini: Benchmark, tmp_path: Path
) -> None:
    target = tmp_path / f"{ARGUMENT}.jsonl"
    samples = write_completions(target, broken(mini)[:2])
    code, text = walk("eval", "mini", "--model", samples, "--samples", "2")
    assert code == 0
    assert r"\x1b[31m" in text
    assert walk("score", samples, "--benchmark", "mini", "--problems", "2")[0] == 0


def test_extract(walk: Walk, mini: Benchmark, tmp_path: Path) -> None:
    escapes = "\x1b[31m\x1b]0;owned\x07\x9b31m\x7f\x08\u202e"
    text = f"{escapes}\n```python\n{mini.problems[0].reference}\n# \t{escapes}\n```\n{escapes}"
    samples = write_completions(tmp_path / "s.jsonl", [(mini.problems[0].task_id, text)])
    for more in ([], ["--explain"]):
        code, shown = walk("extract", samples, "--benchmark", "mini", *more)
        assert code == 0
        assert r"\x9b31m" in shown
    code, shown = walk("extract", samples, "--benchmark", "mini", "--json")
    assert escapes in json.loads(shown)["solution"]


def test_servers(walk: Walk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with serving(models=[{"id": HOSTILE}], text=lambda _: HOSTILE) as server:
        asked = ("openai:", "--base-url", server.url)
        code, text = walk("run", *asked, "--chat", "--prompt", "x", "--verbose")
        assert code == 0
        assert r"\x1b[31m" in text
        assert walk("bench", *asked, "--rounds", "1", "--batch", "1")[0] == 0
        assert walk("prompt", "mini", "0", "--model", *asked)[0] == 0
        assert walk("eval", "mini", "--model", *asked, "--samples", "1")[0] == 0
        server.refuses, server.refusal = ("model",), f"{{}} {HOSTILE}"
        assert walk("run", *asked, "--chat", "--prompt", "x")[0] == 2
        batch = tmp_path / "prompts.jsonl"
        batch.write_text(json.dumps({"prompt": "x", "task_id": HOSTILE}) + "\n")
        assert walk("run", *asked, "--batch-jsonl", batch)[0] == 2
        server.models = [{"id": f"{n}{HOSTILE}"} for n in range(3)]
        assert walk("run", *asked, "--chat", "--prompt", "x")[0] == 2


def test_model_files(walk: Walk, tmp_path: Path) -> None:
    small = write_small(tmp_path / f"{ARGUMENT}.gguf", ("Q4_K",))
    small.write_bytes(small.read_bytes().replace(b"blk.0.ffn_up", b"blk\x1b[31m\n_up"))
    assert walk("check", small, "--no-run")[0] == 1
    code, text = walk("qa", small)
    assert code == 1
    assert r"\x1b[31m" in text


def test_data_folders(walk: Walk, tmp_path: Path) -> None:
    folder = tmp_path / ARGUMENT
    folder.mkdir()
    (folder / HUMANEVAL.path).parent.mkdir(parents=True, exist_ok=True)
    (folder / HUMANEVAL.path).write_bytes(b"no data")
    assert walk("data", "list", "--data", folder)[0] == 0
    walk("data", "verify", "humaneval", "--data", folder)


@pytest.mark.slow
def test_sandbox_list(walk: Walk) -> None:
    assert walk("sandbox", "list")[0] == 0


BAD_INPUT = [
    ("eval", ARGUMENT),
    ("eval", "mini", "--model", ARGUMENT),
    ("eval", "mini", f"--{ARGUMENT}"),
    ("compare", ARGUMENT, ARGUMENT),
    ("prompt", "mini", ARGUMENT),
    ("check", ARGUMENT),
    ("env", "remove", ARGUMENT),
    ("passk", "--tsv", ARGUMENT),
    (ARGUMENT,),
]


@pytest.mark.parametrize("arguments", BAD_INPUT, ids=lambda words: words[0][:4].strip("\x1b["))
def test_errors_are_one_line(walk: Walk, arguments: tuple[str, ...]) -> None:
    code, text = walk(*arguments)
    assert code == 2
    assert len(text.splitlines()) == 1
    assert len(text) < 2100


@pytest.fixture
def terminal(tmp_path: Path) -> Callable[..., bytes]:
    """Runs the real command with a terminal for both of its outputs."""

    def run(*arguments: str | Path) -> bytes:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*ASSAY, *map(str, arguments)], cwd=tmp_path, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 1 << 16):
                shown += piece
        except OSError:  # how a terminal says that nobody writes to it any more
            pass
        os.close(ours)
        process.wait()
        return shown

    return run


def test_on_a_real_terminal(terminal: Callable[..., bytes], results: Path) -> None:
    """Only a terminal receives colours; click strips them elsewhere."""
    for path in results.glob("*.json"):
        path.write_text(path.read_text().replace(r"\ud800", ""))  # not valid Unicode
    shown = terminal("history", "--results-dir", results).replace(b"\r\n", b"\n")
    assert not harmful(shown.decode())


def test_a_file_name_is_no_markup(terminal: Callable[..., bytes], tmp_path: Path) -> None:
    """As markup, ``[red]`` would be a colour of the live line."""
    with serving() as server:
        (tmp_path / "[red]x.jsonl").write_text('{"prompt": "x"}\n')
        shown = terminal(
            "run", "openai:", "--base-url", server.url, "--batch-jsonl", "[red]x.jsonl",
            "--output", "made.jsonl",
        )  # fmt: skip
    assert b"[red]x.jsonl" in shown
    assert (tmp_path / "made.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("path", sorted(CLI.rglob("*.py")), ids=lambda path: path.name)
def test_one_module_prints(path: Path) -> None:
    if path.name == "_output.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        banned = ("print", "echo", "secho") if isinstance(called, ast.Attribute) else ("print",)
        assert name not in banned, f"{path.name} line {getattr(node, 'lineno', 0)}: use _output"
