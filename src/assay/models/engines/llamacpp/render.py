"""How llama.cpp gives a prompt to its model, by its own word."""

from __future__ import annotations

import json
import queue
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from assay.models.workers.template_process import MEMORY, SECONDS, TemplateLimitError

LOOK_EVERY_S = 0.1


def added_start(address: str) -> str:
    """The token, as text, that llama.cpp puts before every prompt; nothing if it puts none."""
    start = _asked(f"{address}/tokenize", {"content": "", "add_special": True})["tokens"]
    return str(_asked(f"{address}/props")["bos_token"]) if start else ""


def rendered(
    address: str, message: dict[str, Any], variables: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The reply to a question how a prompt is given to the model."""
    prompt, error = message["render"], None
    text: str = prompt["text"].removeprefix(added_start(address))
    tokens: list[dict[str, Any]] = []
    try:
        if prompt["messages"]:
            text = render_within_limits(address, prompt["messages"], variables)
        # As for a completion: with a first token, if the model wants one, and special ones as such.
        ways = {"add_special": True, "parse_special": True, "with_pieces": True}
        tokens = _asked(f"{address}/tokenize", {"content": text, **ways})["tokens"]
    except ValueError as failure:
        error = str(failure)
    return {
        "id": message["id"],
        "rendered": {
            "text": text,
            "tokens": [token["id"] for token in tokens],
            "pieces": [_text(token["piece"]) for token in tokens],
        },
        "error": error,
    }


def apply_template(
    address: str, messages: list[dict[str, str]], variables: dict[str, Any] | None = None
) -> str:
    """Return the text that llama.cpp makes of messages; ValueError if the template refuses."""
    body = {"messages": messages, "chat_template_kwargs": variables or {}}
    return str(_asked(f"{address}/apply-template", body)["prompt"])


def render_within_limits(
    address: str,
    messages: list[dict[str, str]],
    variables: dict[str, Any] | None = None,
    seconds: float = SECONDS,
) -> str:
    """Do the same; TemplateLimitError after so many seconds, or when it takes too much memory.

    What llama.cpp still does then ends with this process alone.
    """
    found: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found.put(apply_template(address, messages, variables))
        except Exception as error:
            found.put(error)

    deadline, before = time.monotonic() + seconds, _own_memory()
    threading.Thread(target=ask, daemon=True).start()
    while True:
        try:
            answer = found.get(timeout=LOOK_EVERY_S)
        except queue.Empty:
            if _own_memory() - before > MEMORY:
                raise TemplateLimitError(
                    f"rendering its chat template takes more than {MEMORY >> 30} GB"
                ) from None
            if time.monotonic() > deadline:
                raise TemplateLimitError(
                    f"rendering its chat template takes more than {seconds:g} s"
                ) from None
            continue
        if isinstance(answer, Exception):
            raise answer
        return answer


def _own_memory() -> int:
    """Return the bytes that belong to this process alone: without files that it has mapped."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def _asked(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            found: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as refusal:
        told = json.load(refusal)
        raise ValueError(told.get("error", {}).get("message", str(refusal))) from refusal
    return found


def _text(piece: str | list[int]) -> str:
    """Parts of a character come as bytes."""
    return piece if isinstance(piece, str) else bytes(piece).decode(errors="replace")
