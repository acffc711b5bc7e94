"""GGUF files, run by llama.cpp."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.fetch import file_sha256
from assay.models import Backend, backends
from assay.models._gguf_file import is_gguf, read_header
from assay.models._llama_worker import END
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
        self._engine: subprocess.Popen[str] | None = None
        self._used_gpu = False
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
        with tempfile.TemporaryFile() as log:
            try:
                for number, request in enumerate(requests):
                    if self._engine is None:
                        self._start(request.decoding.max_tokens, log)
                    self._send({"id": number, "body": _body(request)})
                    waiting[number] = request
                    # One in hand for each sequence: none is idle while we write things down.
                    if len(waiting) >= 2 * self._parallel:
                        yield self._next(waiting, log)
                if self._engine is not None:
                    self._send(END)
                while waiting:
                    yield self._next(waiting, log)
            finally:
                self.close()

    def describe(self) -> dict[str, object]:
        return {"xllamacpp": importlib.metadata.version("xllamacpp"), "parallel": self._parallel}

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.kill()
            engine.wait()

    def _start(self, max_tokens: int, log: Any) -> None:
        context = min(self._header.context_length, PROMPT_TOKENS + max_tokens)
        self._engine = subprocess.Popen(
            [sys.executable, "-m", "assay.models._llama_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )
        self._send({"path": str(self._path), "parallel": self._parallel, "context": context})
        reply = self._receive(log)
        if "fatal" in reply:
            raise ModelError(
                f"llama.cpp cannot load {self._path}: {_last_line(log, reply['fatal'])}"
            )
        self._used_gpu = reply["ready"]["used_gpu"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._engine is not None
        assert self._engine.stdin is not None
        try:
            self._engine.stdin.write(json.dumps(message) + "\n")
            self._engine.stdin.flush()
        except BrokenPipeError:
            pass  # the engine ended; the next read says how

    def _receive(self, log: Any) -> dict[str, Any]:
        assert self._engine is not None
        assert self._engine.stdout is not None
        line = self._engine.stdout.readline()
        if not line.endswith("\n"):
            code = self._engine.wait()
            raise ModelError(
                f"llama.cpp ended while it ran {self._path.name} (exit {code}): "
                f"{_last_line(log, 'no message')}; what was made is kept, run again to continue"
            )
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _next(self, waiting: dict[int, Request], log: Any) -> Completion:
        reply = self._receive(log)
        request, answer = waiting.pop(reply["id"]), reply["answer"]
        usage = answer.get("usage", {})
        error = None if "choices" in answer else _message(answer)
        text, finish_reason = _choice(answer)
        return Completion(
            task_id=request.task_id,
            sample=request.sample,
            text=text,
            finish_reason=finish_reason,
            prompt_tokens=usage.get("prompt_tokens", 0),
            tokens_generated=usage.get("completion_tokens", 0),
            inference_ms=round(reply["ms"], 3),
            seed=request.seed,
            used_gpu=self._used_gpu,
            error=error,
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
        # A reused prefix was computed in another batch shape: 1 of 24 greedy texts changed by it.
        "cache_prompt": False,
    }
    if prompt.messages:
        body["messages"] = [{"role": m.role, "content": m.content} for m in prompt.messages]
    else:
        body["prompt"] = prompt.text
    return body


def _choice(answer: dict[str, Any]) -> tuple[str, Any]:
    if not answer.get("choices"):
        return "", "error"
    choice = answer["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    return text or "", "length" if choice["finish_reason"] == "length" else "stop"


def _message(answer: dict[str, Any]) -> str:
    error = answer.get("error", answer)
    return str(error.get("message", error))


def _last_line(log: Any, otherwise: str) -> str:
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else otherwise


backends.register("gguf")(Backend(GgufModel, is_gguf))
