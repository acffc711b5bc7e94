"""Run GGUF files with llama.cpp."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.datasets import look_up_sha256
from assay.errors import ModelError, UsageError, install_hint
from assay.formats.gguf.checkpoint import read_gap
from assay.formats.gguf.file import describe_header, is_gguf, read_header
from assay.formats.tensors import GGML_NUMBERS
from assay.models import Backend, backends, prompt_form
from assay.models.devices import driver_gpu, free_memory, require_gpu
from assay.models.engines.llamacpp.options import check_option_names
from assay.models.engines.llamacpp.render import check_template
from assay.models.model import EngineFacts
from assay.models.names import default_name
from assay.models.options import (
    LOCAL_OPTIONS,
    NamedValue,
    check_chat_settings,
)
from assay.models.workers.engine_messages import EngineWorkerSettings
from assay.models.workers.process import EngineWorker
from assay.models.workers.process_model import ProcessModel
from assay.types import ModelIdentity
from assay.work.machine import usable_physical_cores

if TYPE_CHECKING:
    from assay.formats.marks import Gap
    from assay.models import EngineOptions
    from assay.types import Request


WORKER = "assay.models.engines.llamacpp.llama_worker"
# Tokens per second on 2 CPU cores with HumanEval's prompts. Greedy, by batch size: 1: 68, 8: 74,
# 16: 81, 32: 50 (all attend as far as the longest). Ten samples per prompt: 12: 119, 24: 135.
PARALLEL = 16
PROMPT_TOKENS = 2048
SCORED_TOKENS = 2048  # at a time: logits of more need much memory
# Formats whose products on a CPU do not depend on the batch (measured). Floats do; others unknown.
INVARIANT = {GGML_NUMBERS[name] for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")}
MEMORY_SHARE = 0.25  # of what is free, for keys and values


@dataclass(frozen=True, slots=True)
class LlamaSettings(EngineWorkerSettings):
    """Sizes, and ``invariant``: on a CPU, results with these weights do not depend on the batch."""

    context: int = 0
    model_context: int = 0
    parallel: int = 1
    invariant: bool = False


@dataclass(frozen=True, slots=True)
class LlamaFacts(EngineFacts):
    xllamacpp: str | None = None
    device: str | None = None
    parallel: int | None = None
    batch_invariant: bool | None = None
    threads: int | None = None
    engine_options: tuple[NamedValue, ...] | None = None
    thinks: bool | None = None


class GgufModel(ProcessModel[LlamaFacts]):
    """A GGUF file. llama.cpp starts with the first request and ends with the last."""

    scoring_module = "assay.models.engines.llamacpp.native"

    def __init__(self, reference: str, options: EngineOptions) -> None:
        self._path = Path(reference).resolve()
        super().__init__(EngineWorker(WORKER, "llama.cpp", str(self._path), LlamaFacts))
        if not self._path.exists():
            raise ModelError(f"{reference}: is not a file. Give the path of a model file.")
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelError(f"llama.cpp: is not installed. Run {install_hint('gguf')}.")
        require_gpu(options.device)
        self._own_options = options.own_options
        check_option_names(self._own_options)
        self._header = read_header(self._path)
        if self._header.context_length < 1:
            raise ModelError(
                f"{reference}: its context length is {self._header.context_length}. "
                "Download it again."
            )
        self.options = options
        stored = describe_header(self._path, self._header)
        self.template = template = self._header.chat_template
        self.identity = ModelIdentity(
            name=options.name or default_name(Path(reference), stored=stored),
            engine="gguf",
            weights_sha256=look_up_sha256(self._path),
            prompt_form=prompt_form(options, template, reference),
            tokenizer_sha256=self._header.tokenizer_sha256,
            template_sha256=hashlib.sha256(template.encode()).hexdigest() if template else "",
            path=str(self._path),
        )
        check_chat_settings(options, self.identity.prompt_form, template, reference)

    def settings(self, first: Request) -> LlamaSettings:
        if self.template:
            version = importlib.metadata.version("xllamacpp")
            check_template(
                self._path, f"{version} {self.identity.tokenizer_sha256} {self.template}"
            )
        longest = PROMPT_TOKENS + max(self.options.longest, first.decoding.max_tokens)
        context = min(self._header.context_length, longest)
        fitting = int(MEMORY_SHARE * free_memory() / (context * self._header.bytes_per_token))
        return dataclasses.replace(
            self._settings(context),
            model_context=self._header.context_length,
            parallel=self.options.batch_size or max(1, min(PARALLEL, fitting)),
            invariant=not self._own_options
            and all(t.kind in INVARIANT for t in self._header.tensors if t.shape[1:]),
        )

    def _settings(self, context: int) -> LlamaSettings:
        threads = self.options.threads or usable_physical_cores()
        options = dataclasses.replace(self.options, threads=threads)
        return LlamaSettings(str(self._path), options, self.chat_template, context)

    def find_gap(self) -> Gap | None:
        return read_gap(self._path)

    def gpu(self) -> str:
        """Return the GPU that llama.cpp will use.

        A separate process checks this, because what the binding loads stays loaded.
        """
        gpu = "" if self.options.device == "cpu" else driver_gpu()
        if not gpu:
            return ""
        ask = (
            "import sys; from assay.models.engines.llamacpp.llama_worker import wants_gpu; "
            "sys.exit(wants_gpu(''))"
        )
        return gpu if subprocess.run([sys.executable, "-c", ask]).returncode else ""

    def scoring_settings(self) -> LlamaSettings:
        if self._own_options:
            name = self._own_options[0].name
            raise UsageError(
                f"--engine-option {name}: has no effect on logits and perplexity. Drop it."
            )
        return self._settings(min(self._header.context_length, SCORED_TOKENS))

    def describe(self) -> LlamaFacts:
        version = importlib.metadata.version("xllamacpp")
        return dataclasses.replace(self._facts, xllamacpp=version, thinks=self.thinks or None)


backends.register("gguf")(Backend(GgufModel, is_gguf, LOCAL_OPTIONS, "processes"))
