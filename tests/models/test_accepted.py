"""Every engine accepts or refuses every option: none is ignored."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from assay.errors import UsageError
from assay.models import EngineOptions, backends, open_model
from assay.models.opening import ALWAYS, check_accepted
from assay.models.options import list_given

# A value of each option that is not its default.
GIVEN: dict[str, Any] = {
    "batch_mode": "off", "parallel": 1, "threads": 2, "device": "cpu", "devices": "0,1",
    "dtype": "float16", "adapter": "folder", "prompt_form": "text",
    "base_url": "http://127.0.0.1:9", "logprobs": True, "timeout": 5.0, "answer_timeout": 5.0,
    "requests_per_minute": 7, "tokens_per_minute": 7, "price_in": 1.0, "price_out": 1.0,
    "name": "mine", "longest": 99, "thinking": "on", "revision": "main",
    "engine_options": ("a=1",),
}  # fmt: skip
ENGINES = ("apr", "apr-cli", "gguf", "hf", "openai", "replay", "vllm")
EVERYWHERE = "name longest"
LOCAL = "batch_mode parallel threads device devices prompt_form logprobs thinking engine_options"
ACCEPTED = {
    "apr": f"{EVERYWHERE} {LOCAL} dtype",
    "apr-cli": f"{EVERYWHERE} batch_mode parallel device prompt_form",
    "gguf": f"{EVERYWHERE} {LOCAL}",
    "hf": f"{EVERYWHERE} {LOCAL} dtype adapter revision",
    "openai": f"{EVERYWHERE} batch_mode parallel prompt_form base_url logprobs timeout "
    "answer_timeout requests_per_minute tokens_per_minute price_in price_out thinking "
    "engine_options",
    "replay": f"{EVERYWHERE} logprobs batch_mode",
    "vllm": f"{EVERYWHERE} {LOCAL} dtype adapter revision",
}


def test_the_tables_are_complete() -> None:
    assert list(GIVEN) == [field.name for field in dataclasses.fields(EngineOptions)]
    assert set(ENGINES) == set(ACCEPTED) <= set(backends.names())
    for name in GIVEN:
        assert list_given(EngineOptions(**{name: GIVEN[name]})) == [name]


@pytest.mark.parametrize("option", GIVEN)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_option_is_accepted_or_refused(engine: str, option: str) -> None:
    """An option of another engine, as ``--base-url`` with recorded completions, has no effect."""
    options = EngineOptions(**{option: GIVEN[option]})
    if option in ACCEPTED[engine].split():
        check_accepted(options, engine)
        return
    with pytest.raises(UsageError, match=f"the {engine} engine has no such setting") as refusal:
        check_accepted(options, engine)
    accepting = [name for name in ENGINES if option in ACCEPTED[name].split()]
    message = str(refusal.value)
    assert message.startswith(f"--{option.replace('_', '-').removesuffix('s')}")
    assert message.endswith(f"use one of the engines {', '.join(accepting)}.")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_option_is_refused_before_anything_is_read(engine: str) -> None:
    refused = next(name for name in GIVEN if name not in ACCEPTED[engine].split())
    with pytest.raises(UsageError, match="has no such setting"):
        open_model(f"{engine}:nowhere", EngineOptions(**{refused: GIVEN[refused]}))


def test_what_no_engine_accepts_together_is_only_dropped() -> None:
    options = EngineOptions(base_url="http://127.0.0.1:9", dtype="float16")
    with pytest.raises(UsageError, match=r"^--dtype, --base-url: .* Drop it\.$"):
        check_accepted(options, "replay")


def test_engines_name_only_options_that_exist() -> None:
    for name in backends.names():
        assert backends.get(name).accepts <= set(GIVEN) - ALWAYS
