"""llama.cpp in a process of its own, one JSON line in and out per prompt.

Apart from the harness because the binding replaces its signal handlers, prints, and aborts the
whole process on some damaged files.
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

END = {"end": True}


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what llama.cpp prints must not mix with the replies
    settings = json.loads(sys.stdin.readline())
    try:
        server, about = _load(settings)
    except Exception as error:
        _reply(replies, {"fatal": str(error)})
        return
    _reply(replies, {"ready": about})
    requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    threads = [
        threading.Thread(target=_serve, args=(server, requests, replies), daemon=True)
        for _ in range(settings["parallel"])
    ]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        request = json.loads(line)
        if request == END:
            break
        requests.put(request)
    else:
        os._exit(1)  # the harness is gone
    for _ in threads:
        requests.put(None)
    for thread in threads:
        thread.join()


def _load(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_parallel = settings["parallel"]
    params.n_ctx = settings["parallel"] * settings["context"]
    params.cont_batching = True
    # Measured on CPU (16 HumanEval prompts, greedy): with a cache of its own per sequence and no
    # flash attention, 4 at a time give the tokens of one at a time; either left out, they do not.
    params.kv_unified = False
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_ram_mib = 0
    params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
    params.verbosity = 0
    devices = [device["type"].name for device in xllamacpp.get_device_info()]
    return xllamacpp.Server(params), {"used_gpu": any("GPU" in device for device in devices)}


def _serve(server: Any, requests: queue.SimpleQueue[dict[str, Any] | None], replies: Any) -> None:
    while (request := requests.get()) is not None:
        identifier, body = request["id"], request["body"]
        handle = server.handle_chat_completions if "messages" in body else server.handle_completions
        started = time.perf_counter()
        answer = handle(body)
        elapsed_ms = (time.perf_counter() - started) * 1000
        _reply(replies, {"id": identifier, "answer": answer, "ms": elapsed_ms})


_reply_lock = threading.Lock()


def _reply(replies: Any, message: dict[str, Any]) -> None:
    with _reply_lock, contextlib.suppress(BrokenPipeError):
        replies.write(json.dumps(message) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
