"""Options that several commands share as a set, which some of them get as one argument."""

from __future__ import annotations

import functools
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from assay.cli._groups import (
    DATA,
    JUDGING,
    LOCAL_ENGINES,
    MODEL,
    PROMPT,
    SERVERS,
    TORCH_AND_VLLM,
    Decorator,
    add_options,
    field_options,
    option,
    switch,
)
from assay.cli._options import (
    AUTO,
    FILE,
    SELECTIONS,
    as_json,
    data_dir,
    list_choices,
    no_cache,
    prompt_imports,
    results_dir,
    resume,
    sandbox_options,
)
from assay.pipeline import EngineOptions, ProblemSelection
from assay.pipeline.config import MAX_TOKENS, MAX_TOKENS_THINKING, PRESETS, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable


def _collect(argument: str, kind: type[Any]) -> Decorator:
    """Return a decorator: the command's options for fields of a dataclass become one argument."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(**options: Any) -> Any:
            names = [field.name for field in fields(kind) if field.name in options]
            collected = kind(**{name: options.pop(name) for name in names})
            return command(**{argument: collected}, **options)

        return call

    return decorate


_data = functools.partial(option, group=DATA)
# Select problems of a benchmark. The command gets ``problems``, a ProblemSelection.
problem_options = add_options(
    _data(
        "--problems",
        "Only the first N problems; or A:B, problems A to B - 1, counted from 0; 0 selects "
        "all. --samples is the old name.",
        "--samples range", default="0", metavar="N|A:B",
        envvar=["ASSAY_PROBLEMS", "ASSAY_SAMPLES"],
    ),
    _data(
        "--task", "Only the problem with this task id. Can be repeated.", "tasks", multiple=True,
        metavar="ID",
    ),
    _data(
        "--from-file",
        "Only the problems whose task ids are listed in this file, one per line.", "file",
        type=FILE,
    ),
    _data(
        "--from", "Only the problems that were published on this day or later.", "first_day",
        default="", metavar="YYYY-MM-DD",
    ),
    _data(
        "--to", "Only the problems that were published on this day or earlier.", "last_day",
        default="", metavar="YYYY-MM-DD",
    ),
    _data(
        "--label",
        "Only the problems with this label, such as difficulty=hard. Can be repeated.", "labels",
        multiple=True, metavar="NAME=VALUE",
    ),
    _collect("problems", ProblemSelection),
)  # fmt: skip

_model = functools.partial(field_options, EngineOptions)
# Run a model. The command gets ``engine``, an EngineOptions.
model_options = add_options(
    *_model(
        MODEL,
        name="Name of the model in results. Default: the file or folder, with adapter, size and "
        "data type.",
        parallel="Batch size; 0 chooses automatically.",
    ),
    option(
        "--batch-mode",
        "auto: batch if the engine can; on: fail if it cannot; off: run one prompt at a time.",
        group=MODEL, type=click.Choice(["auto", "on", "off"]), default="auto",
        envvar=["ASSAY_BATCH_MODE", "APR_BATCH_MODE"],
    ),
    *_model(MODEL, logprobs="Record each completion's mean log-probability."),
    option(
        "--engine-option",
        "Setting of this engine only, such as flash_attn_type=enabled for llama.cpp. The "
        "value is JSON or text. Can be repeated.",
        "engine_options", group=MODEL, multiple=True, metavar="KEY=VALUE",
    ),
    option(
        "--prompt-form",
        "Form of the prompts; auto uses chat if the model has a chat template, and text in assay "
        "run.",
        group=PROMPT, type=click.Choice(["auto", "chat", "text"]), default="auto",
    ),
    option(
        "--device", "Device to run the model on; auto uses a GPU if the engine finds one.",
        group=LOCAL_ENGINES, type=click.Choice(["auto", "cpu", "cuda"]), default="auto",
    ),
    option(
        "--devices",
        "GPUs to run the model on, such as 0,1. llama.cpp and torch run one process on "
        "each; vLLM splits the model. cpu,cpu runs two processes on the CPU. Default: one.",
        group=LOCAL_ENGINES, default="", metavar="LIST",
    ),
    *_model(LOCAL_ENGINES, threads="Number of CPU threads; 0 uses one per available core."),
    option(
        "--dtype", "Data type to compute in. Default: float32 on a CPU, bfloat16 on a GPU.",
        group=TORCH_AND_VLLM, type=click.Choice(["", "float32", "bfloat16", "float16"]), default="",
        metavar="[float32|bfloat16|float16]",
    ),
    *_model(
        TORCH_AND_VLLM,
        adapter="Folder with LoRA weights to apply to the model.",
        revision="Branch, tag or commit of a Hugging Face hub repository.",
    ),
    *_model(
        SERVERS,
        base_url="URL of the server, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL.",
        timeout="Read timeout for a server in seconds.",
        answer_timeout="Time limit for a server's whole answer in seconds; 0 means --timeout plus "
        "one second per token of --max-tokens.",
        requests_per_minute="Rate limit for requests to a server; 0 means no limit.",
        tokens_per_minute="Rate limit for prompt and generated tokens of a server; 0 means no "
        "limit.",
        price_in="Price of a million prompt tokens, for the cost in the result.",
        price_out="Price of a million generated tokens, for the cost in the result.",
    ),
    _collect("engine", EngineOptions),
)  # fmt: skip


def _apply_preset(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the settings of ``--preset`` that no option gives."""

    @functools.wraps(command)
    def call(preset: str | None, **options: Any) -> Any:
        if preset is not None:
            source = click.get_current_context().get_parameter_source
            settings = asdict(PRESETS[preset]).items()
            options |= {n: v for n, v in settings if source(n) is ParameterSource.DEFAULT}
        return command(**options)

    return call


_prompt = functools.partial(option, group=PROMPT)
_sampling = functools.partial(field_options, Sampling, PROMPT)
# Sample tokens. The command gets ``sampling``, a Sampling; options override the preset.
sampling_options = add_options(
    _prompt(
        "--preset",
        "greedy: one sample, temperature 0; pass1: 10 samples, temperature 0.8, top-k 40; "
        "pass10: 100 samples, otherwise as pass1. Explicit options override the preset.",
        type=click.Choice(list(PRESETS)),
    ),
    *_sampling(n_samples="Completions per problem or prompt."),
    _prompt(
        "--temperature",
        "Sampling temperature; 0 is greedy, and gives one sample. Default: 0 with one "
        "sample, 0.8 and top-k 40 with several.",
        type=float,
    ),
    _prompt(
        "--top-k",
        "Sample from the K likeliest tokens; 0 means no limit. Default: 40 if the temperature is "
        "above 0.",
        type=int,
    ),
    *_sampling(
        top_p="Sample from the likeliest tokens with this total probability; 1 means no limit.",
        min_p="Exclude tokens whose probability is below this share of the likeliest token's; "
        "0 means no limit.",
        repetition_penalty="Penalty for tokens already in the prompt or the completion; 1 means "
        "none.",
    ),
    _prompt(
        "--max-tokens",
        f"Maximum tokens per completion. Default: {MAX_TOKENS}. In evaluations, the "
        "benchmark's own default, or "
        f"{MAX_TOKENS_THINKING} if the model's chat template supports reasoning.",
        type=int,
    ),
    *_sampling(seed="Seed for sampling; the seed of every sample is derived from it."),
    _apply_preset,
    _collect("sampling", Sampling),
)

# Change what a model is sent. Apply it above ``model_options``.
prompt_options = add_options(
    _prompt("--system", "System message before every conversation. Default: none.", default=""),
    _prompt(
        "--stop",
        "Stop word: text that ends a completion, in addition to the stop words of the "
        "prompt. Can be repeated.",
        multiple=True, metavar="TEXT",
    ),
    _prompt(
        "--thinking",
        "Whether the model reasons before it answers: on, off, or the maximum number of "
        "reasoning tokens. Default: the chat template decides.",
        default="", metavar="on|off|N",
    ),
)  # fmt: skip


def parse_time_limit(_: click.Context, __: click.Parameter, value: str) -> float | None:
    """Return a number of seconds, or None for ``auto``."""
    if value == AUTO:
        return None
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither {AUTO} nor a number. Give a number of seconds."
        ) from None


# Execute programs. The command gets ``problems``, a ProblemSelection.
judging_options = add_options(
    problem_options,
    _data("--split", "Part of the benchmark, such as train for mbpp.", default=""),
    data_dir,
    sandbox_options,
    prompt_imports,
    switch(
        "--check-references",
        "Run the reference solutions again instead of using cached verdicts.",
        group=JUDGING,
    ),
    option(
        "--select",
        "Also score the best of N samples per problem, chosen without the tests by the "
        f"method {list_choices(SELECTIONS)}. Default: none.",
        group=JUDGING, default="",
    ),
    option(
        "--tests-seed",
        "Seed for tests with random inputs. Default: a new secret seed for every run.",
        group=JUDGING, default="",
    ),
    option(
        "--time-limit",
        "CPU seconds per program: auto, or a number for all problems. auto derives the "
        "limit of each problem from the CPU time of its reference solution, if the benchmark "
        "has such a rule.",
        group=JUDGING, default=AUTO, metavar="auto|SECONDS", callback=parse_time_limit,
    ),
    switch(
        "--all-cases",
        "For programs that read standard input, run all cases and count how many are "
        "right. Default: stop at the first failed case.",
        group=JUDGING,
    ),
    no_cache,
    results_dir,
    resume,
    as_json,
)  # fmt: skip
