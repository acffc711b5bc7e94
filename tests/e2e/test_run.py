"""``assay run`` as a user runs it, kills it and runs it again."""

from __future__ import annotations

import contextlib
import functools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import ASSAY, Cli, write_completions
from tests.e2e.test_bad_input import refused
from tests.e2e.test_resume import descendants, survivors
from tests.in_process import run_command
from tests.pipeline.test_pipeline import ScriptedModel, install

Command = tuple[str, ...]
TIMES = ("tok_per_sec", "inference_ms")

# The command line with one more engine: it takes its time, and its texts show the seed.
SLOW_ENGINE = """
import sys, time
from dataclasses import dataclass
from assay.cli import main
from assay.models import Backend, EngineFacts, backends
from assay.types import Completion, ModelIdentity

@dataclass(frozen=True, slots=True)
class Facts(EngineFacts):
    parallel: int = 1

class Slow:
    identity = ModelIdentity("slow", "slow", "weights", "text")
    def generate(self, requests):
        for r in requests:
            time.sleep(0.05)
            error = "never" if "never" in r.prompt.text else None
            text = f"{r.prompt.text} {r.seed}"
            yield Completion(
                r.task_id, r.sample, text, "error" if error else "stop", 1, 1, 50.0, r.seed, False,
                error=error,
            )
    def describe(self):
        return Facts()
    def close(self):
        pass

backends.register("slow")(Backend(lambda *_: Slow(), lambda _: False))
main()
"""


def prompts(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_times(path: Path) -> list[dict[str, Any]]:
    """In the order of the names: engines answer in any order."""
    made = [{k: v for k, v in line.items() if k not in TIMES} for line in lines(path)]
    return sorted(made, key=lambda line: str(line["task_id"]))


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts ``assay run``, or that of another command line; what a test leaves is ended."""
    with contextlib.ExitStack() as started:

        def run(
            *arguments: str | Path, command: Command = ASSAY, stdin: Any = None
        ) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [*command, "run", *map(str, arguments)],
                cwd=tmp_path,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                # A suite in the background ignores SIGINT; its children would inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield run


@pytest.fixture
def start_slow(start: Start, tmp_path: Path) -> Start:
    (tmp_path / "slow.py").write_text(SLOW_ENGINE)
    return functools.partial(start, "slow:", command=(sys.executable, str(tmp_path / "slow.py")))


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 250
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    texts = [(task_id, f"{task_id} {i}") for i in range(2) for task_id in ("a", "1", "c")]
    return write_completions(tmp_path / "recorded.jsonl", texts, "text")


def test_lines_are_printed_where_no_file_is_named(
    assay: Cli, recorded: Path, tmp_path: Path
) -> None:
    prompts(tmp_path / "in.jsonl", {"prompt": "p", "task_id": "a"}, {"prompt": "q"})
    done = assay("run", recorded, "--batch-jsonl", "in.jsonl")
    assert done.returncode == 0
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["task_id"], line["text"]) for line in made] == [("a", "a 0"), ("1", "1 0")]
    assert done.stderr.splitlines() == ["engine replay", "completions: 2 generated"]
    quiet = assay("run", recorded, "--batch-jsonl", "in.jsonl", "--json")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_a_bad_line_is_a_line_of_the_output(assay: Cli, recorded: Path, tmp_path: Path) -> None:
    prompts(tmp_path / "in.jsonl", {"prompt": "p", "task_id": "a"}, {"prompt": "q"}, {"x": 1})
    asked = ("run", recorded, "--batch-jsonl", "in.jsonl", "--output", "out.jsonl")
    done = assay(*asked, "--n-samples", "2", "--json", "--verbose")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert (report["prompts"], report["made"], report["failed"]) == (6, 4, 2)
    texts = {line["task_id"]: line["text"] for line in lines(tmp_path / "out.jsonl")}
    assert texts == {
        "a_s0": "a 0", "a_s1": "a 1", "1_s0": "1 0", "1_s1": "1 1", "2_s0": "", "2_s1": "",
    }  # fmt: skip
    said = done.stderr.splitlines()
    assert said[0] == "engine replay"
    assert "2 failed, first error: 2_s0: neither prompt nor messages" in said[1]
    assert "tokens in" in said[2]


def test_a_batch_without_any_completion_is_no_success(
    assay: Cli, recorded: Path, tmp_path: Path
) -> None:
    prompts(tmp_path / "in.jsonl", {"prompt": "p", "task_id": "unknown"})
    done = assay("run", recorded, "--batch-jsonl", "in.jsonl", "--output", "out.jsonl", "--json")
    assert done.returncode == 2
    assert "No prompt was completed" in done.stderr
    assert "holds no sample 0 of unknown" in done.stderr
    assert lines(tmp_path / "out.jsonl")[0]["error"] == "the file holds no sample 0 of unknown"


def test_an_empty_file_says_so(assay: Cli, recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    done = assay("run", recorded, "--batch-jsonl", "in.jsonl", "--output", "out.jsonl")
    assert done.returncode == 0
    assert "in.jsonl: contains no prompts" in done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_bad_input_is_one_line(assay: Cli, recorded: Path, tmp_path: Path) -> None:
    prompts(tmp_path / "in.jsonl", {"prompt": "p", "task_id": "a"})
    (tmp_path / "odd.bin").write_bytes(bytes(range(256)))
    batch = ("--batch-jsonl", "in.jsonl")
    refused(assay("run", recorded), "--prompt, --batch-jsonl: exactly one is needed")
    refused(assay("run", recorded, *batch, "--prompt", "p"), "exactly one is needed")
    refused(assay("run", "none.gguf", *batch), "none.gguf: is not a file or folder")
    refused(assay("run", recorded, "--batch-jsonl", "none"), "none: no such file")
    refused(assay("run", recorded, "--batch-jsonl", "odd.bin"), "odd.bin: not a JSONL file (line 1")
    refused(assay("run", recorded, *batch, "--n-samples", "0"), "--n-samples 0: must be")
    refused(assay("run", recorded, *batch, "--temperature", "nan"), "--temperature nan: must be")
    refused(assay("run", recorded, *batch, "--output", "none/x"), "cannot be written", "--output")
    refused(assay("run", recorded, *batch, "--output", "in.jsonl"), "would be overwritten")
    refused(assay("run", recorded, *batch, "--output", "."), "is not a file")
    refused(assay("run", recorded, "--prompt", "p", "--n-samples", "3"), "Use --batch-jsonl")
    refused(assay("run", recorded, "--prompt", "p", "--output", "x"), "Use --batch-jsonl")
    refused(assay("run", recorded, "--prompt", "p"), "did not complete", "no sample 0 of 0")
    refused(assay("run", recorded, *batch, "--chat", "--prompt-form", "text"), "contradict")
    assert lines(tmp_path / "in.jsonl") == [{"prompt": "p", "task_id": "a"}]


def test_one_prompt(start_slow: Start, tmp_path: Path) -> None:
    answer = json.loads(finish(start_slow("--prompt", "p", "--json")))
    assert answer["text"] == f"p {answer['seed']}"
    assert answer["finish_reason"] == "stop"
    assert finish(start_slow("--prompt", "p")) == f"{answer['text']}\n"
    (tmp_path / "question").write_text("from a file")
    with (tmp_path / "question").open() as file:
        asking = start_slow("--prompt", "-", "--verbose", stdin=file)
        out, err = asking.communicate(timeout=60)
    assert out.startswith("from a file ")
    assert err.splitlines()[0] == "engine slow: parallel 1"
    (tmp_path / "question").write_bytes(b"\xff")
    with (tmp_path / "question").open() as file:
        _, err = start_slow("--prompt", "-", stdin=file).communicate(timeout=60)
    assert err.startswith("assay: standard input: not UTF-8")


def test_an_engine_that_cannot_batch_says_so(assay: Cli, recorded: Path, tmp_path: Path) -> None:
    prompts(tmp_path / "in.jsonl", {"prompt": "p", "task_id": "a"})
    batch = ("run", recorded, "--batch-jsonl", "in.jsonl")
    refused(assay(*batch, "--batch-mode", "on"), "replay", "--batch-mode on: the replay engine")
    refused(assay(*batch, env={"APR_BATCH_MODE": "on"}), "--batch-mode on: the replay engine")
    refused(
        assay("eval", "mini", "--model", recorded, "--batch-mode", "on"),
        "--batch-mode on: the replay engine",
    )
    assert assay(*batch, env={"APR_BATCH_MODE": "off"}).returncode == 0


@pytest.mark.parametrize(
    ("asked", "n", "temperature", "top_k"),
    [
        (("--preset", "greedy"), 1, 0.0, 1),
        (("--preset", "pass1"), 10, 0.8, 40),
        (("--preset", "pass10", "--n-samples", "2"), 2, 0.8, 40),
        (("--preset", "pass1", "--temperature", "0.2", "--top-k", "5"), 10, 0.2, 5),
        (("--preset", "pass1", "--n-samples", "1", "--temperature", "0"), 1, 0.0, 1),
    ],
)
def test_presets(
    assay: Cli, recorded: Path, tmp_path: Path, asked: tuple[str, ...], n: int,
    temperature: float, top_k: int,
) -> None:  # fmt: skip
    prompts(tmp_path / "in.jsonl", {"prompt": "p", "task_id": "a"})
    done = assay("run", recorded, "--batch-jsonl", "in.jsonl", "--output", "out.jsonl", *asked)
    assert done.returncode == 0
    about = json.loads((tmp_path / "out.jsonl.run.json").read_text())
    assert about["n_samples"] == len(lines(tmp_path / "out.jsonl")) == n
    assert about["decoding"]["temperature"] == temperature
    assert about["decoding"]["top_k"] == top_k


def test_presets_of_an_evaluation(
    mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, ScriptedModel(mini))
    asked = (
        "eval", "mini", "--problems", "1", "--preset", "pass10", "--no-parity-gate", "--json",
    )  # fmt: skip
    done = run_command(*asked, "--n-samples", "2", folder=tmp_path)
    config = json.loads(done.out)["config"]
    assert (config["num_samples"], config["temperature"], config["top_k"]) == (2, 0.8, 40)
    monkeypatch.setenv("ASSAY_N_SAMPLES", "2")
    monkeypatch.setenv("ASSAY_TEMPERATURE", "0.5")
    by_variable = run_command(*asked, folder=tmp_path)
    assert json.loads(by_variable.out)["config"]["temperature"] == 0.5


@pytest.mark.slow
def test_kill_9_anywhere_and_rerun_give_the_undisturbed_file(
    start_slow: Start, tmp_path: Path
) -> None:
    texts = [{"prompt": f"p{i}" if i % 5 else "never"} for i in range(20)]
    prompts(tmp_path / "in.jsonl", *texts)
    asked = ("--batch-jsonl", "in.jsonl", "--n-samples", "2", "--temperature", "0.8")
    finish(start_slow(*asked, "--output", "calm.jsonl"))
    rough = tmp_path / "rough.jsonl"
    for count in (0, 1, 12, 30):
        process = start_slow(*asked, "--output", rough)
        wait_for_lines(rough, count, process)
        process.kill()
        process.communicate()
    report = json.loads(finish(start_slow(*asked, "--output", rough, "--json")))
    assert report["kept"] >= 20
    assert without_times(rough) == without_times(tmp_path / "calm.jsonl")
    assert len({line["task_id"] for line in lines(rough)}) == len(lines(rough)) == 40
    assert sum("error" in line for line in lines(rough)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_says_how_to_go_on(
    start_slow: Start, tmp_path: Path, stop: signal.Signals
) -> None:
    prompts(tmp_path / "in.jsonl", *({"prompt": f"p{i}"} for i in range(200)))
    out = tmp_path / "out.jsonl"
    process = start_slow("--batch-jsonl", "in.jsonl", "--output", out)
    wait_for_lines(out, 3, process)
    second = start_slow("--batch-jsonl", "in.jsonl", "--output", out)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "another process is writing" in said
    process.send_signal(stop)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        err.splitlines()[-1]
        == "assay: Interrupted. Completed work is saved; run the same command to resume."
    )
    assert "Traceback" not in err
    assert 3 <= len(lines(out)) < 200


MODEL_PROMPTS: list[dict[str, Any]] = [
    {"prompt": "def add(a, b):\n", "task_id": "code"},
    {"messages": [{"role": "user", "content": "Name three colours."}], "task_id": "chat"},
    *({"prompt": f"The number after {i} is", "max_tokens": 6 + 4 * i} for i in range(4)),
    {"prompt": "Once upon a time, there was", "stop": ["."], "task_id": "tale"},
    {"prompt": "word " * 9000, "task_id": "too long"},
]


@pytest.mark.model
@pytest.mark.slow
def test_batched_and_one_by_one_give_the_same_lines(assay: Cli, tmp_path: Path) -> None:
    prompts(tmp_path / "in.jsonl", *MODEL_PROMPTS)
    asked = ("run", "default", "--batch-jsonl", "in.jsonl", "--max-tokens", "24", "--verbose")
    for mode, parallel in (("on", 4), ("off", 1)):
        how = ("--batch-mode", mode, "--parallel", str(parallel))
        done = assay(*asked, *how, "--output", f"{mode}.jsonl")
        assert done.returncode == 0, done.stderr
        assert f"parallel {parallel}, batch_invariant True" in done.stderr
        about = json.loads((tmp_path / f"{mode}.jsonl.run.json").read_text())
        assert about["environments"][0]["engine"]["parallel"] == parallel
    made = without_times(tmp_path / "on.jsonl")
    assert made == without_times(tmp_path / "off.jsonl")
    by_name = {line["task_id"]: line for line in made}
    assert len(by_name) == len(MODEL_PROMPTS)
    assert "context" in by_name.pop("too long")["error"]
    assert all("error" not in line and line["text"] for line in by_name.values())
    assert (by_name["2"]["tokens_generated"], by_name["2"]["finish_reason"]) == (6, "length")
    assert "." not in by_name["tale"]["text"]
    assert by_name["chat"]["prompt_tokens"] > by_name["tale"]["prompt_tokens"]


@pytest.mark.model
@pytest.mark.slow
def test_the_real_model_killed_or_stopped_continues_to_the_same_tokens(
    start: Start, tmp_path: Path
) -> None:
    prompts(tmp_path / "in.jsonl", *MODEL_PROMPTS)
    asked = (
        "default", "--batch-jsonl", "in.jsonl", "--max-tokens", "16", "--n-samples", "3",
        "--temperature", "0.8",
    )  # fmt: skip
    finish(start(*asked, "--output", "calm.jsonl"))
    rough = tmp_path / "rough.jsonl"
    for count, stop in ((0, signal.SIGKILL), (2, signal.SIGINT), (11, signal.SIGKILL)):
        process = start(*asked, "--output", rough)
        wait_for_lines(rough, count, process)
        family = descendants(process.pid)
        process.send_signal(stop)
        process.communicate(timeout=60)
        assert process.returncode == (130 if stop == signal.SIGINT else -stop)
        assert survivors(family, seconds=10) == []
    finish(start(*asked, "--output", rough))
    assert without_times(rough) == without_times(tmp_path / "calm.jsonl")
    assert len(lines(rough)) == 3 * len(MODEL_PROMPTS)
    by_name = {line["task_id"]: line for line in lines(rough)}
    alone = {**MODEL_PROMPTS[0], "seed": by_name["code_s2"]["seed"]}
    prompts(tmp_path / "alone.jsonl", alone)
    again = finish(
        start(
            "default", "--batch-jsonl", "alone.jsonl", "--max-tokens", "16",
            "--temperature", "0.8",
        )
    )  # fmt: skip
    assert json.loads(again)["text"] == by_name["code_s2"]["text"]


@pytest.mark.slow
@pytest.mark.model
def test_a_prompt_to_the_real_model(assay: Cli) -> None:
    asked = ("run", "default", "--prompt", "What is the capital of France?", "--max-tokens", "12")
    plain, chat = (assay(*asked, "--json", *more) for more in ((), ("--chat",)))
    assert plain.returncode == chat.returncode == 0, plain.stderr + chat.stderr
    answers = [json.loads(done.stdout) for done in (plain, chat)]
    assert answers[1]["prompt_tokens"] > answers[0]["prompt_tokens"]
    assert answers[1]["text"] != answers[0]["text"]
    assert all(0 < answer["tokens_generated"] <= 12 for answer in answers)


@pytest.mark.slow
@pytest.mark.model
def test_the_result_of_an_evaluation_tells_how_it_was_batched(assay: Cli) -> None:
    asked = ("eval", "mini", "--samples", "1", "--max-tokens", "8", "--json")
    done = assay(*asked, env={"APR_BATCH_MODE": "off"})
    engine = json.loads(done.stdout)["environment"]["engine"]
    assert (engine["parallel"], engine["batch_invariant"]) == (1, True)
