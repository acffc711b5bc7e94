"""Chat templates that loop for ever or fill the memory: one line that names the file, exit code 2.

Without limits, all of the commands here run until they are killed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.models.workers import prompt_tokens
from assay.models.workers.prompt_tokens import TemplateLimitError, TemplateProcess
from assay.types import Message
from tests.conftest import Cli

LOOP = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
# Holds Python's lock for hours, without a loop.
POWER = "{{ 9 ** (9 ** 9) }}"
DOUBLING = (
    "{% set ns = namespace(x='xxxxxxxx') %}"
    "{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}"
)
SAID = "{% for m in messages %}[{{ m['content'] }}]{% endfor %}"
LATER = "{% if 'def ' in messages[-1]['content'] %}" + LOOP + "{% endif %}" + SAID
MESSAGES = [Message("user", "hello")]


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done
    assert done.stdout == ""
    *progress, complaint = done.stderr.splitlines()
    assert all(re.fullmatch("mini (preparing|loading).*", line) for line in progress), done.stderr
    for word in ("assay: ", "chat template", *words):
        assert word in complaint


@pytest.fixture
def process() -> Iterator[Callable[..., TemplateProcess]]:
    """Make one whose template is a function, which is killed in the end."""
    opened: list[TemplateProcess] = []

    def make(apply: Callable[[Any], str], seconds: float = 20.0) -> TemplateProcess:
        opened.append(TemplateProcess(apply, seconds))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_what_a_template_says_comes_through(process: Callable[..., TemplateProcess]) -> None:
    rendered = process(lambda messages: f"<{messages[0]['content']}>")
    for text in ("hello", "日本語\ud800\n\x00", "x" * 1_000_000):
        assert rendered.render([Message("user", text)]) == f"<{text}>"


def test_a_refusal_is_that_prompts_alone(process: Callable[..., TemplateProcess]) -> None:
    def apply(messages: Any) -> str:
        if messages[0]["role"] == "system":
            raise RuntimeError("no system messages")
        return "fine"

    rendered = process(apply)
    with pytest.raises(ValueError, match="no system messages"):
        rendered.render([Message("system", "")])
    assert rendered.render([Message("user", "")]) == "fine"


@pytest.mark.parametrize("work", ["while True: pass", "9 ** 9 ** 9"])
def test_time_is_limited(process: Callable[..., TemplateProcess], work: str) -> None:
    began = time.monotonic()
    rendered = process(lambda _: exec(work) or "", seconds=0.5)  # type: ignore[func-returns-value]
    with pytest.raises(TemplateLimitError, match="takes more than 0.5 s"):
        rendered.render(MESSAGES)
    assert time.monotonic() - began < 10


def test_memory_is_limited(process: Callable[..., TemplateProcess]) -> None:
    with pytest.raises(TemplateLimitError, match="more than 1 GB"):
        process(lambda _: "x" * (3 << 30)).render(MESSAGES)


def test_the_text_is_limited(process: Callable[..., TemplateProcess]) -> None:
    with pytest.raises(TemplateLimitError, match="more than 8,388,608 characters"):
        process(lambda _: "x" * (prompt_tokens.CHARACTERS + 1)).render(MESSAGES)


def test_a_crash_is_told(process: Callable[..., TemplateProcess]) -> None:
    def crash(_: Any) -> str:
        os._exit(3)

    with pytest.raises(TemplateLimitError, match="ended the process"):
        process(crash).render(MESSAGES)


def test_it_ends_with_the_engine(tmp_path: Path) -> None:
    """Even in the middle of an endless template."""
    code = (
        "import os\n"
        "from assay.models.workers.prompt_tokens import TemplateProcess\n"
        "def apply(_):\n"
        f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "    while True: pass\n"
        "TemplateProcess(apply, 60.0).render([])\n"
    )
    engine = subprocess.Popen([sys.executable, "-c", code])
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    child = int((tmp_path / "pid").read_text())
    engine.kill()
    engine.wait()
    wait_until(lambda: not Path(f"/proc/{child}").exists())


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("template", [LOOP + SAID, DOUBLING], ids=["loop", "doubling"])
def test_llama_cpp_at_load(assay: Cli, tmp_path: Path, template: str) -> None:
    """llama.cpp renders every template while it loads a file."""
    pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")
    from tests.models.small_models import write_small

    write_small(tmp_path / "endless.gguf", chat_template=template)
    refused(assay("prompt", "mini", "0", "--model", "endless.gguf"), "endless.gguf")


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("command", ["prompt", "eval"])
def test_llama_cpp_later(assay: Cli, tmp_path: Path, command: str) -> None:
    pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")
    from tests.models.small_models import write_small

    write_small(tmp_path / "later.gguf", chat_template=LATER)
    task = ("0",) if command == "prompt" else ("--problems", "1", "--json")
    refused(assay(command, "mini", *task, "--model", "later.gguf"), "later.gguf", "more than 10 s")


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "asked"),
    [
        pytest.param(LOOP, ("eval", "mini", "--problems", "1", "--json"), id="loop"),
        pytest.param(POWER, ("prompt", "mini", "0"), marks=pytest.mark.whole, id="power"),
        pytest.param(DOUBLING, ("run",), marks=pytest.mark.whole, id="doubling"),
    ],
)
def test_transformers(assay: Cli, tmp_path: Path, template: str, asked: tuple[str, ...]) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
    command = [sys.executable, "-m", "tests.models.tiny_folder", str(tmp_path / "tiny")]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2], capture_output=True)
    (tmp_path / "tiny" / "chat_template.jinja").write_text(template)
    model = ("tiny", "--chat", "--prompt", "x") if asked == ("run",) else ("--model", "tiny")
    refused(assay(*asked, *model), "tiny")
