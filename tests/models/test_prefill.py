"""Prefilled answers: every engine lets it continue them, or refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.benchmarks.support.evalplus import CHAT_STOP
from assay.errors import ModelError, UsageError
from assay.extract import extract
from assay.models import EngineOptions, check_prefilling, open_model
from assay.models.model import join_answer
from assay.models.workers.prompt_tokens import BEGUN, render_chat
from assay.pipeline.prompting import describe_form, may_think
from assay.prompts import name_parts
from assay.runs.caches import CompletionStore
from assay.types import Decoding, Message, Problem, Prompt, Request, Tests
from tests.formats.test_gaps import default_file
from tests.models.faulty_server import USAGE, FaultyServer
from tests.models.llama_server import llama_server
from tests.models.openai_requests import opened

ASKED = (Message("user", "Write a function."),)
PREFILL = "Here it is:\n```python\n"
PREFILLED = Prompt(ASKED, prefill=PREFILL)
NOT_FOUND = 404, {"detail": "Not Found"}


def request(prompt: Prompt = PREFILLED, max_tokens: int = 12) -> Request:
    return Request("t", 0, prompt, Decoding(max_tokens=max_tokens), 0)


def chatml(messages: Any) -> str:
    said = "".join(f"<|im_start|>{m.role}\n{m.content}<|im_end|>\n" for m in messages)
    return f"{said}<|im_start|>assistant\n"


def test_the_template_renders_the_prefill() -> None:
    """As EvalPlus: the template is applied to the whole conversation, and cut where it ends."""
    expected = f"<|im_start|>user\nWrite a function.<|im_end|>\n<|im_start|>assistant\n{PREFILL}"
    assert render_chat(chatml, PREFILLED) == expected
    assert render_chat(chatml, Prompt(ASKED)) == expected.removesuffix(PREFILL)


def test_what_a_template_writes_before_an_answer_is_kept() -> None:
    """DeepSeek's ends with '### Response:' but begins an answer with '### Response:' and a line."""

    def render(messages: Any) -> str:
        *asked, last = messages
        closed = last.role == "assistant"
        before = "".join(m.content for m in (asked if closed else messages))
        return f"{before}### Response:" + (f"\n{last.content}<|EOT|>" if closed else "")

    assert render_chat(render, PREFILLED) == f"Write a function.### Response:\n{PREFILL}"


@pytest.mark.parametrize(
    "change",
    [lambda text: text.replace(BEGUN, ""), str.upper, lambda text: text.replace(PREFILL, "")],
)
def test_a_template_that_changes_the_prefill_is_an_error(
    change: Callable[[str], str],
) -> None:
    with pytest.raises(ValueError, match="does not keep the beginning of an answer"):
        render_chat(lambda messages: change(chatml(messages)), PREFILLED)


def test_parts_name_the_prefill() -> None:
    assert name_parts(PREFILLED)[-1] == ("assistant, prefilled", PREFILL)
    assert name_parts(Prompt(ASKED)) == [("user", "Write a function.")]
    assert name_parts(Prompt(text="a", suffix="b")) == [("prefix", "a"), ("suffix", "b")]
    assert name_parts(Prompt(text="a")) == [("text", "a")]


def test_the_completion_store_tells_prompts_apart(tmp_path: Path) -> None:
    store = CompletionStore(tmp_path, ["m"])
    prompts = (PREFILLED, Prompt(ASKED), replace(PREFILLED, prefill="x"))
    assert len({store.key(request(prompt)) for prompt in prompts}) == 3
    before = "ee72d159d1989e4369d1d2df2d4d0f7668a9a58c74184c978fd6a0cda5f91c41"
    assert store.key(request(Prompt(text="a"))) == before  # without a prefill


@pytest.mark.model
def test_llamacpp_continues_the_answer() -> None:
    model = open_model(str(default_file()))
    with model.keep_loaded():
        rendered = model.render(PREFILLED)
        assert rendered.text.endswith(f"assistant\n{PREFILL}")
        assert "".join(rendered.pieces).endswith(PREFILL)
        assert "the-model-continues" not in rendered.text
        (done,) = model.generate([request()])
        (plain,) = model.generate([request(Prompt(text=rendered.text))])
        stop = plain.text.strip()[:1]
        (ended,) = model.generate([request(replace(PREFILLED, stop=(stop, "`", "Here")))])
    model.close()
    assert done.error is None
    assert done.text == PREFILL + plain.text
    assert (done.prompt_tokens, done.tokens_generated) == (
        len(rendered.tokens),
        plain.tokens_generated,
    )
    # Stop words apply to what the model adds, though they occur in the prefill.
    assert ended.text == PREFILL + plain.text[: plain.text.index(stop)]


@pytest.mark.parametrize(
    ("added", "finish", "stop", "end"),
    [
        ("x = 1", "stop", CHAT_STOP, "x = 1\n```\n"),
        ("x = 1\n", "stop", CHAT_STOP, "x = 1\n```\n"),
        ("x = 1\n```", "stop", CHAT_STOP, "x = 1\n```"),  # the model ended its answer there
        ("x = 1", "length", CHAT_STOP, "x = 1"),
        ("x = 1", "stop", (), "x = 1"),
    ],
)
def test_a_closing_fence_that_ended_the_text_is_part_of_it(
    added: str, finish: str, stop: tuple[str, ...], end: str
) -> None:
    asked = replace(PREFILLED, stop=stop)
    assert join_answer(asked, added, finish) == PREFILL + end
    assert join_answer(replace(asked, prefill=""), added, finish) == added


def test_of_two_definitions_in_a_prefilled_block_the_last_counts() -> None:
    """The last counts in Python too. Without the closing fence, the first would."""
    added = "def f(x):\n    return 1\n\ndef f(x):\n    return 2"
    text = join_answer(replace(PREFILLED, stop=CHAT_STOP), added, "stop")
    tests = Tests("f", code="assert f(1) == 2")
    found = extract(text, Problem("t", "Write f.", "", tests), "chat")
    assert found.code.rstrip().endswith("return 2")


def continues(
    ways: str, bodies: list[dict[str, Any]]
) -> Callable[[str, dict[str, Any]], tuple[int, Any] | None]:
    """How a server answers: it continues the message, ignores the question, or refuses it."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, Any] | None:
        bodies.append(body)
        if path == "/apply-template":
            if ways == "llama.cpp":
                return 200, {"prompt": chatml(ASKED) + body["messages"][-1]["content"]}
            return NOT_FOUND
        if ways == "refuses" and "continue_final_message" in body:
            text = "Unrecognized request argument supplied: continue_final_message"
            return 400, {"error": {"message": text}}
        more = 0 if ways == "ignores" or body.get("continue_final_message") else 5
        usage = None if ways == "uncounted" else {**USAGE, "prompt_tokens": 20 + more}
        choice = {"message": {"content": "def f(): pass"}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": usage}

    return answer


@pytest.mark.parametrize("ways", ["vLLM", "llama.cpp"])
def test_a_server_continues_the_message(server: FaultyServer, ways: str) -> None:
    bodies: list[dict[str, Any]] = []
    server.own_answer = continues(ways, bodies)
    model = opened(server)
    check_prefilling(model)
    asked = len(bodies)
    (done,) = model.generate([request()])
    assert done.text == f"{PREFILL}def f(): pass"
    assert len(bodies) == asked + 1  # it was tried once
    sent = bodies[-1]
    assert sent["messages"][-1] == {"role": "assistant", "content": PREFILL}
    assert (sent["continue_final_message"], sent["add_generation_prompt"]) == (True, False)
    shown = json.loads(model.render(PREFILLED).text)
    assert shown["continue_final_message"] is True
    assert shown["messages"] == sent["messages"]


@pytest.mark.parametrize("ways", ["ignores", "refuses", "uncounted"])
def test_a_server_that_begins_another_answer_is_refused(server: FaultyServer, ways: str) -> None:
    """Before anything of the benchmark is sent, and also where nobody checked before."""
    bodies: list[dict[str, Any]] = []
    server.own_answer = continues(ways, bodies)
    with pytest.raises(
        ModelError, match="tiny: the server cannot continue a prefilled answer"
    ) as error:
        check_prefilling(opened(server))
    assert "\n" not in str(error.value)
    assert all(body.get("max_tokens", 1) == 1 for body in bodies)
    with pytest.raises(ModelError, match="cannot continue a prefilled answer"):
        list(opened(server).generate([request()]))


def test_other_prompts_have_no_such_fields(server: FaultyServer) -> None:
    list(opened(server).generate([request(Prompt(ASKED))]))
    assert not {"continue_final_message", "add_generation_prompt"} & server.bodies[-1].keys()


@pytest.mark.slow
@pytest.mark.model
def test_llamacpps_own_server_continues_the_message() -> None:
    with llama_server(default_file()) as address:
        model = open_model("openai:", EngineOptions(base_url=address))
        check_prefilling(model)
        (done,) = model.generate([request()])
    here = open_model(str(default_file()))
    (same,) = here.generate([request()])
    assert done.text == same.text


class Talker:
    """A model that thinks, in an engine that can continue answers."""

    thinks = True

    class identity:  # noqa: N801 - a property elsewhere
        name, engine, prompt_form, template_sha256 = "toy", "gguf", "chat", "1"

    def check_prefilling(self) -> None:
        pass


def test_a_model_does_not_think_after_a_prefill() -> None:
    model: Any = Talker()
    assert may_think(model, "chat", Prompt(ASKED))
    assert not may_think(model, "chat", PREFILLED)
    for thinking in ("on", "100"):
        with pytest.raises(
            UsageError, match=f"--thinking {thinking}: the prompt strategy prefills"
        ):
            describe_form(model, "chat", PREFILLED, EngineOptions(thinking=thinking))
        describe_form(model, "chat", Prompt(ASKED), EngineOptions(thinking=thinking))
    for thinking in ("", "off"):
        described = describe_form(model, "chat", PREFILLED, EngineOptions(thinking=thinking))
        assert described.endswith("its answer is prefilled")


def test_an_engine_that_cannot_continue_is_refused() -> None:
    class Plain:
        class identity:  # noqa: N801 - a property elsewhere
            name, engine, prompt_form = "toy", "apr-cli", "chat"

    plain: Any = Plain()
    with pytest.raises(
        ModelError, match="toy: the apr-cli engine cannot continue a prefilled answer"
    ):
        describe_form(plain, "chat", PREFILLED, EngineOptions())
