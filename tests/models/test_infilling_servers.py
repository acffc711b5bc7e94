"""Servers fill in code: by llama.cpp's /infill, by suffix, or by tokens that they know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.models import EngineOptions, Model, check_infilling, open_model
from assay.types import Prompt
from tests.formats.gap_models import DEEPSEEK, rename_in_gguf
from tests.formats.test_gaps import GAP, PREFIX, SUFFIX, complete, default_file
from tests.models.faulty_server import USAGE, FaultyServer
from tests.models.llama_server import llama_server
from tests.models.openai_requests import opened

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
pytestmark = pytest.mark.usefixtures("quick_retries")

NOT_FOUND = 404, {"detail": "Not Found"}
Answer = Callable[[str, dict[str, Any]], tuple[int, Any] | None]


def completions(suffix: str, tokens: tuple[str, ...] = ()) -> Answer:
    """How a server answers: its suffix is used, ignored, refused or uncounted."""

    def answer(path: str, body: dict[str, Any]) -> tuple[int, Any] | None:
        if path == "/infill" or (path == "/tokenize" and not tokens):
            return NOT_FOUND
        if path == "/tokenize":
            return 200, {"count": 1 if body["prompt"] in tokens else 5}
        if "suffix" not in body or suffix == "ignored":
            return None
        if suffix == "refused":
            return 400, {"error": {"message": "suffix is not currently supported"}}
        usage = None if suffix == "uncounted" else {**USAGE, "prompt_tokens": 12}
        choice = {"text": f"filled {body['prompt']}", "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": usage}

    return answer


@pytest.mark.parametrize("suffix", ["used", "uncounted"])
def test_a_suffix_of_completions_is_used(server: FaultyServer, suffix: str) -> None:
    server.own_answer = completions(suffix)
    model = opened(server)
    said = check_infilling(model)
    assert said.startswith("the suffix is sent to the server's /completions")
    assert ("does not report" in said) == (suffix == "uncounted")
    assert complete(model) == [f"filled {PREFIX}"]
    assert model.describe().to_json()["infilling"] == said
    shown = json.loads(model.render(GAP).text)
    assert (shown["prompt"], shown["suffix"]) == (PREFIX, SUFFIX)


@pytest.mark.parametrize("suffix", ["ignored", "refused"])
def test_tokens_are_put_around_where_the_server_has_no_suffix(
    server: FaultyServer, suffix: str
) -> None:
    """As with vLLM, which refuses a suffix and tells what is one token."""
    server.own_answer = completions(suffix, tuple(DEEPSEEK))
    model = opened(server)
    assert check_infilling(model) == f"prefix, suffix and middle are marked by {DEEPSEEK}"
    (text,) = complete(model)
    marked = f"{DEEPSEEK.prefix}{PREFIX}{DEEPSEEK.suffix}{SUFFIX}{DEEPSEEK.middle}"
    assert text == f"said {marked}"
    assert server.bodies[-1]["prompt"] == marked
    assert "suffix" not in server.bodies[-1]


@pytest.mark.parametrize("suffix", ["ignored", "refused"])
def test_a_server_without_any_way_is_refused(server: FaultyServer, suffix: str) -> None:
    """A server that ignores the suffix would score a model that never saw it."""
    server.own_answer = completions(suffix, ("<|fim_prefix|>",))
    with pytest.raises(ModelError, match="tiny: the server cannot fill in code"):
        check_infilling(opened(server))


def test_other_prompts_need_no_way(server: FaultyServer) -> None:
    server.own_answer = completions("refused")
    model = opened(server, prompt_form="text")
    assert complete(model, Prompt(text="hello")) == ["said hello"]
    assert "infilling" not in model.describe().to_json()


@pytest.mark.slow
@pytest.mark.model
def test_llamacpps_server_fills_in_like_the_engine(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    path = rename_in_gguf(default_file(), tmp_path / "gap.gguf")
    with llama_server(path) as url:
        model = open_served(url)
        assert check_infilling(model) == "prefix and suffix are sent to the server's /infill"
        (served,) = complete(model)
        assert served
        assert complete(model) == [served]
        shown = json.loads(model.render(GAP).text)
    assert (shown["input_prefix"], shown["input_suffix"]) == (PREFIX, SUFFIX)


@pytest.mark.model
def test_llamacpps_server_with_a_model_without_tokens_is_refused() -> None:
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    with llama_server(default_file()) as url:
        model = open_served(url)
        with pytest.raises(ModelError, match=r"has no fill-in-the-middle tokens.*not supported"):
            check_infilling(model)


def open_served(url: str) -> Model:
    return open_model("openai:", EngineOptions(base_url=url, name="served"))
