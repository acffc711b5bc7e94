"""Serve llama.cpp over the lines of ``workers.process``. The process ends with its input."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.formats.marks import thought_tags
from assay.models.engines.llamacpp.answers import SampleCollector
from assay.models.engines.llamacpp.gguf_model import LlamaFacts, LlamaSettings
from assay.models.engines.llamacpp.options import apply_options
from assay.models.engines.llamacpp.render import (
    added_start,
    infill_tokens,
    render_prompt,
    render_within_limits,
)
from assay.models.options import (
    by_name,
)
from assay.models.workers.engine_messages import Ask, Pause, Render, Reply
from assay.models.workers.lines import Lines
from assay.models.workers.prompt_tokens import PROBE, TemplateLimitError, check_switch, render_chat
from assay.types import Prompt
from assay.work import run_in_background

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.formats.marks import Gap
    from assay.types import Message, Request

BATCH_TOKENS = 2048
# Top-k, top-p and min-p follow the temperature, as in other engines. llama.cpp has it last.
SAMPLERS = [
    "penalties", "dry", "top_n_sigma", "temperature", "top_k", "typ_p", "top_p", "min_p", "xtc",
]  # fmt: skip
TOGETHER_S = 0.05  # for a prompt's next sample to arrive


def main() -> None:
    lines = Lines(LlamaSettings, pauses=True)
    settings = lines.settings
    with lines.ending_on(Exception):
        free_before = _free_gpu_memory()
        server, used_gpu = _load(settings)
        if settings.options.thinking:
            address = server.listening_address
            check_switch(lambda variables: render_within_limits(address, PROBE, variables))
    parallel = settings.parallel
    facts = LlamaFacts(
        device="gpu" if used_gpu else "cpu",
        parallel=parallel,
        # GPU kernels choose the order of additions by batch size.
        batch_invariant=parallel == 1 or (settings.invariant and not used_gpu),
        threads=settings.options.threads,
        engine_options=settings.options.own_options or None,
    )
    lines.ready(
        facts,
        used_gpu=used_gpu,
        in_hand=2 * parallel,
        # All memory is allocated while loading, and none is freed later.
        gpu_peak=lambda: free_before - _free_gpu_memory(),
    )
    _Dispatcher(server, lines, parallel, added_start(server.listening_address)).serve()


def _load(settings: LlamaSettings) -> tuple[Any, bool]:
    """Load the server with settings that make a text independent of the rest of the batch.

    Measured on CPU (HumanEval prompts, greedy, batches of 4 and 8 against one by one): equal with
    a key-value cache for each sequence, no flash attention, no reused prefixes, and prompts
    evaluated one after the other, each whole. With any of these left out some texts differ.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.n_parallel = settings.parallel
    params.n_ctx = settings.parallel * settings.context
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = settings.options.threads, 0
    params.cont_batching = True
    params.kv_unified = False
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_ram_mib = 0
    params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
    params.prefill_assistant = False  # see ``_spell_out``
    params.special = (
        thought_tags(settings.template) is not None
    )  # their marks may be special tokens
    params.verbosity = 0
    used_gpu = wants_gpu(settings.options.device)
    params.n_gpu_layers = 999 if used_gpu else 0
    apply_options(params, settings.options.own_options)
    return xllamacpp.Server(params), used_gpu


def wants_gpu(device: str) -> bool:
    """Return whether to use a GPU. Raise ValueError if one is required and there is none."""
    import xllamacpp

    kinds = [device_info["type"].name for device_info in xllamacpp.get_device_info()]
    has_gpu = any("GPU" in kind for kind in kinds)
    if device == "cuda" and not has_gpu:
        raise ValueError(
            "this build of llama.cpp finds no GPU. Install one that does, or use --device cpu."
        )
    return has_gpu and device != "cpu"


def _free_gpu_memory() -> int:
    import xllamacpp

    devices = xllamacpp.get_device_info()
    return sum(device["memory_free"] for device in devices if "GPU" in device["type"].name)


def _body(request: Request, settings: LlamaSettings, start: str) -> dict[str, Any]:
    """Return the request in llama.cpp's terms, with every sampler setting explicit.

    ``start`` is what llama.cpp itself puts before every prompt.
    """
    decoding, prompt, options = request.decoding, request.prompt, settings.options
    body = {
        "max_tokens": decoding.max_tokens,
        "temperature": decoding.temperature,
        "top_k": decoding.top_k,
        "top_p": decoding.top_p,
        "min_p": decoding.min_p,
        "repeat_penalty": decoding.repetition_penalty,
        "seed": request.seed,
        "stop": list(prompt.stop),
        "cache_prompt": False,  # a reused prefix was computed in another batch
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if decoding.top_p < 1 or decoding.min_p > 0:
        body["samplers"] = SAMPLERS
    chosen = {option.name for option in options.own_options}
    if decoding.repetition_penalty != 1 and "sampling.penalty_last_n" not in chosen:
        # The whole prompt and text, as in other engines.
        body["repeat_last_n"] = settings.context
    if options.logprobs:
        body["n_probs"] = 1
    if not prompt.messages:
        return {**body, "prompt": prompt.text.removeprefix(start)}
    body["messages"] = [codec.to_json(message) for message in prompt.messages]
    body["logprobs"] = options.logprobs
    if variables := options.template_variables:
        body["chat_template_kwargs"] = by_name(variables)
    budget, tags = options.thinking_budget, thought_tags(settings.template)
    if budget is not None and tags is not None:
        body["reasoning_budget_tokens"] = budget
        body["reasoning_budget_start_tag"] = tags[0]
        body["reasoning_budget_end_tags"] = [tags[1]]
        body["reasoning_budget_message"] = ""  # without it nothing is forced
    return body


class _Dispatcher:
    """The way of requests to llama.cpp as sequences become free, samples of one prompt together.

    Samples of one prompt are one request, so the prompt is evaluated once. The server gives every
    further sample the next seed, and a copy of the prompt's keys and values.
    """

    def __init__(
        self, server: Any, lines: Lines[LlamaSettings], parallel: int, start: str = ""
    ) -> None:
        self._server, self._lines, self._start = server, lines, start
        self._free = threading.Semaphore(parallel)
        self._most = max(1, parallel // 2)  # a new prompt must not wait until all are free
        self._prefill = threading.Lock()
        self._next: Ask | Render | None = None
        self._rendered: tuple[Message, ...] = ()  # last

    def serve(self) -> None:
        while True:
            first = self._first()
            if isinstance(first, Render):
                self._render(first)
                continue
            group = self._group(first)
            for _ in group:
                self._free.acquire()
            run_in_background(partial(self.answer, group))

    def answer(self, group: list[Ask]) -> None:
        def send(reply: Reply) -> None:
            self._lines.reply(reply)
            self._free.release()

        settings = self._lines.settings
        try:
            request = self._spell_out(group[0].request)
        except TemplateLimitError as error:
            self._lines.fatal(error)
        except ValueError as error:  # from the template
            for ask in group:
                send(Reply(ask.id, error=f"the prompt cannot be rendered: {error}"))
            return
        body = _body(request, settings, self._start)
        self._try_template(request.prompt.messages)
        if (gap := group[0].gap) is not None:
            body |= self._infill(request.prompt, gap)
        if len(group) > 1:
            body["n"] = len(group)
        ids = [ask.id for ask in group]
        answers = SampleCollector(
            ids, self._prefill, send, settings.model_context, self._lines.count
        )
        try:
            chat = bool(request.prompt.messages)
            handle = (
                self._server.handle_chat_completions if chat else self._server.handle_completions
            )
            handle(body, answers.add)
        except Exception as error:  # without a reply the harness would wait forever
            answers.fail(str(error))
        finally:
            answers.end()

    def _template(self, messages: Sequence[Message]) -> str:
        variables = self._lines.settings.options.template_variables
        return render_within_limits(self._server.listening_address, messages, variables)

    def _spell_out(self, request: Request) -> Request:
        """Return a request with a prefilled answer as one for plain text, with the chat rendered.

        llama.cpp itself would put the prefill after what asks for one.
        """
        prompt = request.prompt
        if not prompt.prefill:
            return request
        text = render_chat(self._template, prompt)
        return replace(request, prompt=Prompt(text=text, stop=prompt.stop))

    def _infill(self, prompt: Prompt, gap: Gap) -> dict[str, Any]:
        """Return the fields of a request with a suffix. The marks of a gap end the text too."""
        return {
            "prompt": infill_tokens(self._server.listening_address, prompt, gap),
            "stop": [*prompt.stop, *gap.end_texts],
            "preserved_tokens": list(gap.end_texts),  # others are not in the text
        }

    def _render(self, request: Render) -> None:
        address = self._server.listening_address
        with self._lines.ending_on(TemplateLimitError):
            self._lines.reply(render_prompt(address, request.prompt, self._template, request.gap))

    def _try_template(self, messages: tuple[Message, ...]) -> None:
        """Render once within limits: during a completion nothing could end an endless template."""
        if not messages or messages == self._rendered:
            return
        try:
            self._template(messages)
        except TemplateLimitError as error:
            self._lines.fatal(error)
        except Exception:
            return  # the completion fails in the same way, with the reason
        self._rendered = messages

    def _first(self) -> Ask | Render:
        """Return the next request or question."""
        first, self._next = self._next, None
        while first is None:
            message = self._lines.requests.get()
            first = None if isinstance(message, Pause) else message
        return first

    def _group(self, first: Ask) -> list[Ask]:
        """Return the request and further samples of the same prompt, if there are any."""
        group = [first]
        while len(group) < self._most:
            try:
                message = self._lines.requests.get(timeout=TOGETHER_S)
            except queue.Empty:
                break
            if isinstance(message, Pause):
                break
            if isinstance(message, Render) or not _follows(group[-1].request, message.request):
                self._next = message
                break
            group.append(message)
        return group


def _follows(one: Request, other: Request) -> bool:
    same = one.prompt == other.prompt and one.decoding == other.decoding
    return same and other.seed == one.seed + 1


if __name__ == "__main__":
    main()
