"""A Hugging Face folder evaluated, killed and evaluated on; a file of prompts likewise."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ASSAY

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")

from tests.models.torch_models import save_model

pytestmark = [pytest.mark.slow, pytest.mark.torch]
SAMPLED = ("--n-samples", "3", "--temperature", "0.8", "--max-tokens", "60", "--parallel", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"), max_position_embeddings=4096)


def command(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ASSAY, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finished(folder: Path, *arguments: str | Path) -> None:
    process = command(folder, *arguments)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told


def killed(folder: Path, output: Callable[[], str], lines: int, *arguments: str | Path) -> str:
    """Run until so many lines are there, and kill it: what it had written."""
    process = command(folder, *arguments)
    deadline = time.monotonic() + 200
    while output().count("\n") < lines:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate()
    return output()


def records(text: str) -> dict[tuple[str, int], str]:
    found = [json.loads(line) for line in text.splitlines()]
    by_key = {(r["task_id"], r.get("sample", 0)): r["text"] for r in found}
    assert len(by_key) == len(found), "something was made twice"
    return by_key


@pytest.mark.parametrize("kind", ["eval", pytest.param("run", marks=pytest.mark.whole)])
def test_kill_9_and_rerun_make_nothing_twice_and_lose_nothing(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": "x" * n}) + "\n" for n in range(1, 15)))

    def asked(results: str) -> tuple[Any, Callable[[], str]]:
        if kind == "eval":
            files = Path(tmp_path, results).glob
            pattern = "*/completions.jsonl"
            arguments = ["eval", "mini", "--model", folder, "--results-dir", results, *SAMPLED]
        else:
            files = tmp_path.glob
            pattern = f"{results}.jsonl"
            arguments = ["run", folder, "--batch-jsonl", prompts, *SAMPLED]
            arguments += ["--output", f"{results}.jsonl"]
        return arguments, lambda: "".join(path.read_text() for path in files(pattern))

    arguments, output = asked("disturbed")
    before = killed(tmp_path, output, 5, *arguments)
    assert before.count("\n") < 42, "it was done before it was killed"
    finished(tmp_path, *arguments)
    assert output().startswith(before[: before.rindex("\n") + 1])
    undisturbed, whole = asked("undisturbed")
    finished(tmp_path, *undisturbed)
    assert records(output()) == records(whole())


@pytest.mark.whole
def test_an_apr_file_runs_as_the_folder_it_was_made_from(folder: Path, tmp_path: Path) -> None:
    finished(tmp_path, "convert", folder, "model.apr")
    texts = []
    for model in (folder, "model.apr"):
        results = f"of-{Path(model).name}"
        finished(tmp_path, "eval", "mini", "--model", model, "--results-dir", results, *SAMPLED)
        (path,) = Path(tmp_path, results).glob("*/completions.jsonl")
        texts.append(records(path.read_text()))
    assert texts[0] == texts[1]
    assert len(texts[0]) == 60
