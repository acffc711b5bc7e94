"""How llama.cpp gives a prompt to its model, by its own word."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


def added_start(address: str) -> str:
    """The token, as text, that llama.cpp puts before every prompt; nothing if it puts none."""
    start = _asked(f"{address}/tokenize", {"content": "", "add_special": True})["tokens"]
    return str(_asked(f"{address}/props")["bos_token"]) if start else ""


def rendered(address: str, message: dict[str, Any]) -> dict[str, Any]:
    """The reply to a question how a prompt is given to the model."""
    prompt, error = message["render"], None
    text: str = prompt["text"].removeprefix(added_start(address))
    tokens: list[dict[str, Any]] = []
    try:
        if prompt["messages"]:
            messages = {"messages": prompt["messages"]}
            text = _asked(f"{address}/apply-template", messages)["prompt"]
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
