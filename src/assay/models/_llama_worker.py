"""llama.cpp in a process of its own, one JSON line in and out per prompt.

Apart from the harness because the binding replaces its signal handlers, prints, and aborts the
whole process on some damaged files. It ends when its input does: with the harness.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
from typing import Any

BATCH_TOKENS = 2048


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what llama.cpp prints must not mix with the replies
    settings = json.loads(sys.stdin.readline())
    try:
        server, used_gpu = _load(settings)
    except Exception as error:
        _reply(replies, {"fatal": str(error)})
        return
    _reply(replies, {"ready": True, "used_gpu": used_gpu})
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    prefill = threading.Lock()
    for _ in range(settings["parallel"]):
        serve = threading.Thread(target=_serve, args=(server, requests, prefill, replies))
        serve.daemon = True
        serve.start()
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


def _load(settings: dict[str, Any]) -> tuple[Any, bool]:
    """The server, set so that a text does not depend on what else is generated beside it.

    Measured on CPU (HumanEval prompts, greedy, 4 and 8 at a time against one by one): equal with
    a key-value cache for each sequence, no flash attention, no reused prefixes and prompts
    evaluated one after the other, each whole; with any of these left out some texts differ.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_parallel = settings["parallel"]
    params.n_ctx = settings["parallel"] * settings["context"]
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cont_batching = True
    params.kv_unified = False
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_ram_mib = 0
    params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
    params.verbosity = 0
    devices = [device["type"].name for device in xllamacpp.get_device_info()]
    return xllamacpp.Server(params), any("GPU" in device for device in devices)


def _serve(
    server: Any, requests: queue.SimpleQueue[dict[str, Any]], prefill: threading.Lock, replies: Any
) -> None:
    while True:
        request = requests.get()
        body = {**request["body"], "stream": True, "stream_options": {"include_usage": True}}
        handle = server.handle_chat_completions if "messages" in body else server.handle_completions
        answer = _Answer(prefill)
        started = time.perf_counter()
        try:
            handle(body, answer.add)
        except Exception as error:  # every request gets a reply, or the harness waits for ever
            answer.fail(str(error))
        finally:
            answer.release()
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        _reply(replies, {"id": request["id"], "ms": elapsed_ms, **answer.told()})


class _Answer:
    """Gathers a streamed answer. Holds the prefill lock until its first token has come."""

    def __init__(self, prefill: threading.Lock) -> None:
        self._prefill: threading.Lock | None = prefill
        self._texts: list[str] = []
        self._finish_reason = ""
        self._usage: dict[str, int] = {}
        self._error: str | None = None
        prefill.acquire()

    def add(self, chunk: dict[str, Any]) -> bool:
        self.release()
        if "choices" not in chunk:
            error = chunk.get("error", chunk)
            self.fail(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        for choice in chunk.get("choices", []):
            self._texts.append(choice.get("text") or choice.get("delta", {}).get("content") or "")
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._usage = chunk.get("usage", self._usage)
        return False  # go on

    def fail(self, reason: str) -> None:
        self._error = reason or "llama.cpp gave no reason"

    def release(self) -> None:
        if self._prefill is not None:
            self._prefill.release()
            self._prefill = None

    def told(self) -> dict[str, Any]:
        if self._error is None and not self._finish_reason:
            self._error = "llama.cpp broke the answer off"
        return {
            "text": "".join(self._texts),
            "finish_reason": "length" if self._finish_reason == "length" else "stop",
            "prompt_tokens": self._usage.get("prompt_tokens", 0),
            "tokens_generated": self._usage.get("completion_tokens", 0),
            "error": self._error,
        }


_reply_lock = threading.Lock()


def _reply(replies: Any, message: dict[str, Any]) -> None:
    with _reply_lock, contextlib.suppress(BrokenPipeError):
        replies.write(json.dumps(message) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
