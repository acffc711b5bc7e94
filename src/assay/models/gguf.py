"""GGUF files, run by llama.cpp."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.fetch import file_sha256
from assay.models import Backend, backends
from assay.models._gguf_file import is_gguf, read_header
from assay.models._llama_engine import LlamaEngine
from assay.types import Completion, ModelIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.models import BatchMode
    from assay.types import Request

# More sequences at a time gave no more tokens/s on 2 CPU cores (8: 112, 16: 104, 4: 99, 1: 83).
PARALLEL = 8
PROMPT_TOKENS = 2048


class GgufModel:
    """A GGUF file; llama.cpp is started with the first request and ended with the last."""

    def __init__(self, reference: str, batch_mode: BatchMode) -> None:
        self._path = Path(reference).resolve()
        if not self._path.exists():
            raise ModelError(f"no model file at {reference}")
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelError(
                "GGUF models need llama.cpp: install it with pip install 'assay[gguf]'"
            )
        self._header = read_header(self._path)
        self._parallel = 1 if batch_mode == "off" else PARALLEL
        self._engine: LlamaEngine | None = None
        template = self._header.chat_template
        self.identity = ModelIdentity(
            name=self._path.stem,
            engine="gguf",
            weights_sha256=file_sha256(self._path),
            prompt_form="chat" if template else "text",
            tokenizer_sha256=self._header.tokenizer_sha256,
            template_sha256=hashlib.sha256(template.encode()).hexdigest() if template else "",
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        waiting: dict[int, Request] = {}
        try:
            for number, request in enumerate(requests):
                engine = self._started(request.decoding.max_tokens)
                engine.ask(number, _body(request))
                waiting[number] = request
                # One in hand for each sequence: none is idle while we write things down.
                if len(waiting) >= 2 * self._parallel:
                    yield _completion(engine, waiting)
            while waiting:
                yield _completion(engine, waiting)
        finally:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def describe(self) -> dict[str, object]:
        return {"xllamacpp": importlib.metadata.version("xllamacpp"), "parallel": self._parallel}

    def close(self) -> None:
        if (engine := self._engine) is not None:
            engine.kill()

    def _started(self, max_tokens: int) -> LlamaEngine:
        if self._engine is None:
            context = min(self._header.context_length, PROMPT_TOKENS + max_tokens)
            # Known before it is loaded, so that close() can end the loading too.
            self._engine = LlamaEngine(self._path, self._parallel, context)
            self._engine.wait_until_loaded()
        return self._engine


def _completion(engine: LlamaEngine, waiting: dict[int, Request]) -> Completion:
    reply = engine.answer()
    request = waiting.pop(reply["id"])
    return Completion(
        task_id=request.task_id,
        sample=request.sample,
        text=reply["text"],
        finish_reason="error" if reply["error"] else reply["finish_reason"],
        prompt_tokens=reply["prompt_tokens"],
        tokens_generated=reply["tokens_generated"],
        inference_ms=reply["ms"],
        seed=request.seed,
        used_gpu=engine.used_gpu,
        error=reply["error"],
    )


def _body(request: Request) -> dict[str, Any]:
    """The request in llama.cpp's words; every sampler setting is said, none left to its default."""
    decoding, prompt = request.decoding, request.prompt
    body: dict[str, Any] = {
        "max_tokens": decoding.max_tokens,
        "temperature": decoding.temperature,
        "top_k": decoding.top_k,
        "top_p": decoding.top_p,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "seed": request.seed,
        "stop": list(prompt.stop),
        "cache_prompt": False,  # a reused prefix was computed beside other prompts
    }
    if prompt.messages:
        body["messages"] = [{"role": m.role, "content": m.content} for m in prompt.messages]
    else:
        body["prompt"] = prompt.text
    return body


backends.register("gguf")(Backend(GgufModel, is_gguf))
