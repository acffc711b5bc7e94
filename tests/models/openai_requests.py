"""Prompts for a server and their completions."""

from __future__ import annotations

from typing import Any

from assay.models import EngineOptions, Model, open_model
from assay.types import Completion, Decoding, Message, Prompt, Request
from tests.models.faulty_server import FaultyServer


def ask(count: int, decoding: Decoding | None = None, *, text: bool = False) -> list[Request]:
    def prompt(number: int) -> Prompt:
        said = f"prompt {number}"
        return Prompt(text=said) if text else Prompt(messages=(Message("user", said),))

    settings = decoding or Decoding(max_tokens=16)
    return [Request(f"t/{n}", 0, prompt(n), settings, seed=n) for n in range(count)]


def opened(server: FaultyServer, name: str = "tiny", **options: Any) -> Model:
    return open_model(f"openai:{name}", EngineOptions(base_url=server.url, **options))


def made(model: Model, requests: list[Request]) -> dict[str, Completion]:
    found = list(model.generate(requests))
    assert len(found) == len(requests)
    return {c.task_id: c for c in found}
