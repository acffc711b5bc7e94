"""llama.cpp's own token ids and chat prompts, asked of its server in a process of its own.

Reads {"texts": [...], "chats": [[message, ...], ...]} and prints {"texts": [[id, ...], ...],
"chats": [prompt, ...], "chat_ids": [[id, ...], ...]}.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any


def llama_tokens(path: Path, texts: list[str], chats: list[Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, str(path)],
        input=json.dumps({"texts": texts, "chats": chats}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = 256, 1, False, 0
    server = xllamacpp.Server(params)
    address = server.listening_address

    def ask(name: str, **body: object) -> Any:
        request = urllib.request.Request(
            f"{address}/{name}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def ids(text: str) -> Any:
        return ask("tokenize", content=text, add_special=True, parse_special=True)["tokens"]

    asked = json.load(sys.stdin)
    chats = [ask("apply-template", messages=chat)["prompt"] for chat in asked["chats"]]
    told = {
        "texts": [ids(text) for text in asked["texts"]],
        "chats": chats,
        "chat_ids": [ids(prompt) for prompt in chats],
    }
    replies.write(json.dumps(told))
    replies.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
