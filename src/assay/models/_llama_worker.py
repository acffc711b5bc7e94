"""llama.cpp behind the lines of ``_engine_process``. It ends when its input does."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

from assay.models._worker_lines import Lines

BATCH_TOKENS = 2048


def main() -> None:
    lines = Lines()
    settings = lines.settings
    try:
        server, used_gpu = _load(settings)
    except Exception as error:
        lines.fatal(error)
        return
    parallel = settings["parallel"]
    facts = {
        "device": "gpu" if used_gpu else "cpu",
        "parallel": parallel,
        # Measured on CPU; GPU kernels choose their way of adding up by the batch.
        "batch_invariant": parallel == 1 or not used_gpu,
    }
    lines.ready(used_gpu=used_gpu, in_hand=2 * parallel, facts=facts)
    prefill = threading.Lock()
    serving = [
        threading.Thread(target=_serve, args=(server, lines, prefill), daemon=True)
        for _ in range(parallel)
    ]
    for thread in serving:
        thread.start()
    for thread in serving:
        thread.join()


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
    kinds = [device["type"].name for device in xllamacpp.get_device_info()]
    has_gpu = any("GPU" in kind for kind in kinds)
    if settings["device"] == "cuda" and not has_gpu:
        raise ValueError("this llama.cpp sees no GPU: install a build that does, or --device cpu")
    used_gpu = has_gpu and settings["device"] != "cpu"
    params.n_gpu_layers = 999 if used_gpu else 0
    return xllamacpp.Server(params), used_gpu


def _body(request: dict[str, Any], logprobs: bool) -> dict[str, Any]:
    """The request in llama.cpp's words; every sampler setting is said, none left to its default."""
    decoding, prompt = request["decoding"], request["prompt"]
    body: dict[str, Any] = {
        "max_tokens": decoding["max_tokens"],
        "temperature": decoding["temperature"],
        "top_k": decoding["top_k"],
        "top_p": decoding["top_p"],
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "seed": request["seed"],
        "stop": prompt["stop"],
        "cache_prompt": False,  # a reused prefix was computed beside other prompts
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if logprobs:
        body["n_probs"] = 1
    if prompt["messages"]:
        body["messages"] = prompt["messages"]
        body["logprobs"] = logprobs
    else:
        body["prompt"] = prompt["text"]
    return body


def _serve(server: Any, lines: Lines, prefill: threading.Lock) -> None:
    while True:
        request = lines.requests.get()
        body = _body(request, lines.settings["logprobs"])
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
        lines.reply({"id": request["id"], "ms": elapsed_ms, **answer.told()})


class _Answer:
    """Gathers a streamed answer. Holds the prefill lock until its first token has come."""

    def __init__(self, prefill: threading.Lock) -> None:
        self._prefill: threading.Lock | None = prefill
        self._texts: list[str] = []
        self._finish_reason = ""
        self._usage: dict[str, int] = {}
        self._logprobs: list[float] = []
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
            tokens = (choice.get("logprobs") or {}).get("content", [])
            self._logprobs += [token["logprob"] for token in tokens]
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
            "logprob": statistics.fmean(self._logprobs) if self._logprobs else None,
            "error": self._error,
        }


if __name__ == "__main__":
    main()
