"""The ``apr`` binary as an engine, driven for real but with a stand-in for the binary."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model
from assay.models.engines.apr_cli import apr_model as engine
from assay.types import Completion, Decoding, Message, Prompt, Request
from tests.conftest import Cli
from tests.e2e.test_resume import descendants, start, survivors, wait_for_lines
from tests.models import apr_stand_in

GREEDY = Decoding(max_tokens=16)
HOT = Decoding(max_tokens=16, temperature=0.8, top_k=40)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with the right magic, and ``apr`` on PATH."""
    (tmp_path / "bin").mkdir()
    binary = tmp_path / "bin" / "apr"
    call = shlex.join([sys.executable, str(Path(apr_stand_in.__file__))])
    binary.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_LOG", str(tmp_path / "asked.jsonl"))
    path = tmp_path / "model.apr"
    path.write_bytes(b"APR\0 and so on")
    return f"apr-cli:{path}"


def user(text: str, **fields: Any) -> Prompt:
    return Prompt(messages=(Message("user", text),), **fields)


def asked(*texts: str, decoding: Decoding = GREEDY) -> list[Request]:
    return [Request(f"t{i}", 0, user(text), decoding, seed=i) for i, text in enumerate(texts)]


def made(model: str, requests: Iterable[Request], **options: Any) -> dict[str, Completion]:
    engine = open_model(model, EngineOptions(**options))
    return {c.task_id: c for c in engine.generate(requests)}


def calls(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]


def test_one_process_answers_all_prompts_under_their_own_names(model: str, tmp_path: Path) -> None:
    completions = made(model, asked("first", "second", "say it long"))
    assert {t: c.text for t, c in completions.items()} == {
        "t0": "first|0", "t1": "second|0", "t2": "say it long|0",
    }  # fmt: skip
    assert [c.finish_reason for c in completions.values()] == ["stop", "stop", "length"]
    assert [c.seed for c in completions.values()] == [0, 1, 2]
    assert completions["t0"].inference_ms == 1.5
    (call,) = calls(tmp_path)
    assert (call["max_tokens"], call["temperature"], call["top_k"]) == (16, 0.0, 1)
    assert not call["gpu"]
    assert not call["no_gpu"]


def test_what_is_sent_and_what_cannot_be_done_is_on_record(model: str) -> None:
    engine = open_model(model)
    assert (engine.identity.engine, engine.identity.prompt_form) == ("apr-cli", "chat")
    list(engine.generate(asked("x")))
    assert list(engine.describe().to_json().items()) == [
        ("apr", "apr 0.0.0 (stand-in)"), ("parallel", 1), ("batch_invariant", True),
        ("prompt", "one ChatML user turn by apr"), ("stop_words", "cut off afterwards"),
        ("seeded", True), ("device", "cpu"),
    ]  # fmt: skip
    list(engine.generate(asked("x", decoding=HOT)))
    assert engine.describe().to_json()["seeded"] is False


def test_an_error_line_is_an_error_of_its_prompt_only(model: str) -> None:
    completions = made(model, asked("a", "please fail", "b \ud800", "c"))
    errors = {t: c.error for t, c in completions.items()}
    assert (errors["t0"], errors["t3"]) == (None, None)
    assert errors["t1"] == "Tokenizer encode failed"
    assert "JSON parse error" in str(errors["t2"])
    assert completions["t1"].finish_reason == "error"


def test_an_early_end_keeps_what_was_made_and_tells_why(model: str) -> None:
    stream = open_model(model).generate(asked("a", "then crash", "b"))
    assert next(stream).text == "a|0"
    with pytest.raises(ModelError, match=r"exit 3, CUDA error: out of memory\) with 2 prompts"):
        list(stream)


def test_a_line_that_is_no_answer_is_one_line(model: str) -> None:
    with pytest.raises(ModelError, match="wrote an invalid answer"):
        made(model, asked("say garbage"))


def line(**changes: object) -> str:
    fields = {"task_id": "0_s0", "text": "x", "tokens_generated": 3, "inference_ms": 1.5}
    return json.dumps({**fields, "used_gpu": False, **changes})


HOSTILE = {
    "deep": line(extra=0).replace('"extra": 0', f'"extra": {"[" * 30_000}{"]" * 30_000}'),
    "never closed": "{" + '"a":{' * 30_000,
    "a number as text": line(tokens_generated="3"),
    "a time as text": line(inference_ms="1.5"),
    "a truth as text": line(used_gpu="no"),
    "infinite": line(inference_ms=float("inf")),
    "infinite tokens": line(tokens_generated=float("inf")),
    "not a number": line(inference_ms=float("nan")),
    "negative": line(tokens_generated=-1),
    "a negative time": line(inference_ms=-1.0),
    "4,000 digits": line(tokens_generated=10**4000),
    "10,000 digits": line().replace("1.5", "9" * 10_000),
    "a large exponent": line().replace("1.5", "1e999"),
    "a fraction": line(tokens_generated=2.5),
    "text that is not text": line(text=["x"]),
    "no text": line(text=None),
    "an error that is not text": line(error={"a": 1}),
    "a name that is not text": line(task_id=["0_s0"]),
    "another's name": line(task_id="7_s0"),
    "an empty name": line(task_id=""),
    "a field twice": '{"text": "a", ' + line()[1:],
    "a list": "{}",
    "cut off": line()[:-5],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_answer_is_an_error_of_one_line(
    model: str, case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "answer").write_text(HOSTILE[case])
    monkeypatch.setenv("STAND_IN_FILE", str(tmp_path / "answer"))
    with pytest.raises(ModelError, match="wrote an invalid answer") as found:
        made(model, asked("a"))
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 400


def test_an_answer_that_comes_twice_is_an_error_of_one_line(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "answer").write_text(line())
    monkeypatch.setenv("STAND_IN_FILE", str(tmp_path / "answer"))
    with pytest.raises(ModelError, match="'0_s0' is not a prompt that still waits"):
        made(model, asked("a", "b"))


def test_a_line_without_an_end_is_an_error_of_one_line(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_LINE", 1000)
    with pytest.raises(ModelError, match="a line of more than 1,000 characters"):
        made(model, asked("x" * 2000))


def test_bytes_that_are_not_text_are_replaced(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "answer").write_bytes(line(text="?").encode().replace(b"?", b"\xff\xfe"))
    monkeypatch.setenv("STAND_IN_FILE", str(tmp_path / "answer"))
    assert made(model, asked("a"))["t0"].text == "\ufffd\ufffd"


def test_stop_words_are_cut_off_afterwards(model: str) -> None:
    prompt = user("keep this STOP and this", stop=("STOP", "this"))
    (completion,) = open_model(model).generate([Request("t", 0, prompt, GREEDY, 0)])
    assert completion.text == "keep "
    assert completion.finish_reason == "stop"


def test_what_apr_cannot_be_asked_is_an_error_of_that_prompt_only(model: str) -> None:
    requests = [
        *asked("fine"),
        Request("text", 0, Prompt(text="plain"), GREEDY, 0),
        Request("system", 0, Prompt((Message("system", "s"), Message("user", "u"))), GREEDY, 0),
        Request("nucleus", 0, user("u"), Decoding(top_p=0.9), 0),
        Request("hot", 0, user("u"), HOT, 0),
    ]
    completions = made(model, requests)
    assert completions["t0"].error is None
    assert "one user message" in str(completions["text"].error)
    assert "one user message" in str(completions["system"].error)
    assert "top-p" in str(completions["nucleus"].error)
    assert "one temperature" in str(completions["hot"].error)


@pytest.mark.parametrize(
    ("prompt", "decoding", "why"),
    [
        (user("u"), Decoding(top_p=0.9), "apr has no top-p"),
        (user("u"), Decoding(min_p=0.1), "apr has no min-p"),
        (user("u"), Decoding(repetition_penalty=1.1), "apr has no repetition-penalty"),
        (Prompt((Message("system", "s"), Message("user", "u"))), GREEDY, "one user message"),
    ],
)
def test_a_setting_it_cannot_do_ends_the_run_before_anything_is_made(
    model: str, tmp_path: Path, prompt: Prompt, decoding: Decoding, why: str
) -> None:
    requests = [Request(f"t{n}", 0, prompt, decoding, 0) for n in range(3)]
    with pytest.raises(ModelError, match=why):
        made(model, requests)
    assert not (tmp_path / "asked.jsonl").exists()  # it was not started


@pytest.mark.parametrize(
    "options", [{"thinking": "on"}, {"revision": "main"}, {"engine_options": ("a=1",)}]
)
def test_settings_it_does_not_have_are_refused(model: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the apr-cli engine has no such setting"):
        open_model(model, EngineOptions(**options))


def test_devices_are_passed_on_and_no_fall_back_is_silent(model: str, tmp_path: Path) -> None:
    made(model, asked("x"), device="cpu")
    assert calls(tmp_path)[-1]["no_gpu"]
    with pytest.raises(ModelError, match="did not use a GPU"):
        made(model, asked("x"), device="cuda")
    assert calls(tmp_path)[-1]["gpu"]


def samples(tasks: int, each: int) -> list[Request]:
    return [Request(f"t{t}", s, user("u"), HOT, s) for t in range(tasks) for s in range(each)]


def test_samples_that_vary_are_fine(model: str) -> None:
    assert len(list(open_model(model).generate(samples(5, 10)))) == 50


def test_an_apr_with_a_fixed_seed_is_found_out(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_FIXED", "1")
    with pytest.raises(ModelError, match="same text for all samples of a prompt"):
        list(open_model(model).generate(samples(5, 10)))


def test_closing_from_another_thread_ends_it(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_PAUSE", "0.5")
    engine = open_model(model)
    stream = engine.generate(asked(*"abcdefghijklmnopqrstuvwxyz"))
    next(stream)
    threading.Timer(0.1, engine.close).start()
    with pytest.raises(ModelError, match="apr ended .* prompts left"):
        list(stream)


@pytest.mark.parametrize("options", [{"parallel": 4}, {"batch_mode": "on"}])
def test_values_it_cannot_honour_are_refused(model: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="apr runs one prompt at a time"):
        open_model(model, EngineOptions(**options))


def test_the_text_form_is_refused(model: str) -> None:
    with pytest.raises(UsageError, match="--prompt-form text"):
        open_model(model, EngineOptions(prompt_form="text"))


def test_no_binary_says_how_to_get_one(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ModelError, match="cargo install apr-cli"):
        open_model(model)


def test_a_binary_without_batches_is_too_old(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_OLD", "1")
    with pytest.raises(ModelError, match="has no option --batch-jsonl"):
        open_model(model)


def test_other_files_say_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"PK\3\4")
    with pytest.raises(ModelError, match="starts with b'PK"):
        open_model(f"apr-cli:{tmp_path / 'other'}")
    with pytest.raises(ModelError, match="is not a file"):
        open_model(f"apr-cli:{tmp_path / 'none'}")


@pytest.mark.slow
def test_kill_9_and_rerun_make_nothing_twice(
    model: str, assay: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_PAUSE", "0.3")
    process = start(tmp_path, "mini", "--model", model)
    wait_for_lines(tmp_path, "completions.jsonl", 4, process)
    family = descendants(process.pid)
    process.kill()
    process.communicate()
    assert survivors(family, seconds=20) == []
    monkeypatch.setenv("STAND_IN_PAUSE", "0")
    done = assay("eval", "mini", "--model", model, "--json")
    result = json.loads(done.stdout)
    assert (result["results"]["completed"], result["results"]["invalid"]) == (20, 0)
    (lines,) = tmp_path.glob("results/*/completions.jsonl")
    tasks = [json.loads(line)["task_id"] for line in lines.read_text().splitlines()]
    assert len(tasks) == len(set(tasks)) == 20
    assert len(calls(tmp_path)) == 2


def test_its_speed_is_measured_with_its_loading(model: str, assay: Cli, tmp_path: Path) -> None:
    few = ("--batch", "1", "--rounds", "1", "--new-tokens", "3")
    done = assay("bench", model, *few, "--output", tmp_path / "speed.json")
    assert done.returncode == 0, done.stderr
    assert "an unknown number of tokens, loading included" in done.stdout
    result = json.loads((tmp_path / "speed.json").read_text())
    assert (result["loading"], result["load_s"]) == ("every call", None)
    assert result["prefill_tokens_per_second"] is None
    assert result["time_to_first_token_ms"] > 0
    assert len(calls(tmp_path)) == 2 + 2 * 3
    done = assay("bench", model)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--batch 1" in done.stderr
