"""Settings on the command line: what a server is sent, and what the result says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.in_process import run_command
from tests.models.faulty_server import FaultyServer, serving

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")

SETTINGS = (
    "--temperature", "0.6", "--top-k", "0", "--top-p", "0.95", "--min-p", "0.05",
    "--repetition-penalty", "1.1", "--stop", "END", "--stop", "\nQ:", "--system", "Be brief.",
    "--thinking", "off", "--engine-option", "effort=low", "--engine-option", "top_a=0.5",
)  # fmt: skip


@pytest.fixture
def server(mini: Benchmark, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(text=lambda _: f"```python\n{mini.problems[0].reference}\n```") as served:
        yield served


def evaluated(server: FaultyServer, folder: Path, *settings: str) -> dict[str, Any]:
    asked = ("eval", "mini", "--problems", "1", "--model", "openai:", "--base-url", server.url)
    done = run_command(*asked, *settings, "--json", folder=folder, seconds=120)
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_all_settings_are_sent_and_recorded(server: FaultyServer, tmp_path: Path) -> None:
    plain, chosen = (evaluated(server, tmp_path, *given) for given in ((), SETTINGS))
    body = server.bodies[-1]
    sampling = {"temperature": 0.6, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.1}
    assert body.items() >= sampling.items()
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["stop"] == ["\nQ:", "END"]
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}
    assert (body["effort"], body["top_a"]) == ("low", 0.5)
    asking = {
        "system": "Be brief.",
        "stop": ["\nQ:", "END"],
        "thinking": "off",
        "engine_options": ['effort="low"', "top_a=0.5"],
    }
    assert chosen["config"].items() >= {**sampling, **asking}.items()
    assert chosen["protocol"]["asking"].items() >= asking.items()
    assert chosen["protocol"]["hash"] != plain["protocol"]["hash"]
    neutral = {"top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "thinking": "default"}
    assert plain["config"].items() >= neutral.items()


def test_the_prompt_command_shows_what_is_sent(server: FaultyServer, tmp_path: Path) -> None:
    settings = ("--system", "Be brief.", "--stop", "END")
    done = run_command("prompt", "mini", "0", *settings, "--json", folder=tmp_path)
    shown = json.loads(done.out)["prompt"]
    evaluated(server, tmp_path, *settings)
    body = server.bodies[-1]
    assert (shown["messages"], shown["stop"]) == (body["messages"], body["stop"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("eval", "mini", "--top-p", "0.9"), "--top-p: has no effect at temperature 0"),
        (("eval", "mini", "--temperature", "1", "--top-p", "2"), "--top-p 2.0: must be"),
        (("eval", "mini", "--thinking", "a lot"), "is not valid. Use on, off"),
        (("eval", "mini", "--engine-option", "x"), "is not key=value"),
        (("prompt", "mini", "0", "--system", "s", "--prompt-form", "text"), "--system: the prompt"),
        (("prompt", "mini", "0", "--thinking", "on"), "--thinking: needs --model"),
        (("prompt", "mini", "0", "--stop", ""), "--stop: the text is empty"),
        (("run", "default", "--prompt", "x", "--system", "s"), "--system applies only to"),
        (("run", "default", "--prompt", "x", "--thinking", "on"), "--thinking applies only"),
        (
            ("run", "default", "--prompt", "x", "--engine-option", 'chat_template_kwargs={"a": 1}'),
            "--engine-option chat_template_kwargs applies only to conversations",
        ),
        (
            (
                "eval",
                "mini",
                "--thinking",
                "off",
                "--engine-option",
                'chat_template_kwargs={"enable_thinking": true}',
            ),
            "--engine-option chat_template_kwargs: enable_thinking contradicts --thinking off. ",
        ),
        (("run", "default", "--prompt", "x", "--min-p", "1"), "--min-p 1.0: must be"),
    ],
)
def test_bad_settings_are_one_line(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    done = run_command(*arguments, folder=tmp_path)
    (line,) = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    assert problem in line


def test_a_batch_has_the_settings_too(server: FaultyServer, tmp_path: Path) -> None:
    lines = (
        {"messages": [{"role": "user", "content": "a"}]},
        {"messages": [{"role": "system", "content": "own"}, {"role": "user", "content": "b"}]},
        {"prompt": "c", "top_p": 0.5, "repetition_penalty": 1.2},
    )
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ("run", "openai:", "--base-url", server.url, "--batch-jsonl", source, "--chat")
    settings = ("--temperature", "1", "--top-p", "0.9", "--system", "Be brief.", "--stop", "END")
    output = tmp_path / "out.jsonl"
    done = run_command(*asked, *settings, "--output", output, folder=tmp_path)
    assert done.code == 0, done.err
    bodies = {body["messages"][-1]["content"]: body for body in server.bodies}
    assert [bodies[name]["messages"][0]["content"] for name in "abc"] == [
        "Be brief.", "own", "Be brief.",
    ]  # fmt: skip
    assert [bodies[name]["top_p"] for name in "abc"] == [0.9, 0.9, 0.5]
    assert bodies["c"]["repetition_penalty"] == 1.2
    assert bodies["a"]["stop"] == ["END"]
    again = run_command(
        *asked, *settings, "--output", output, "--engine-option", "a=1", folder=tmp_path
    )
    assert again.code == 2
    assert "engine_options was" in again.err
