"""Options that several commands share; each has an environment variable ``ASSAY_*``."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from assay.cli._choices import AUTO, SELECTIONS, list_choices, sandbox_options
from assay.cli._groups import (
    DATA,
    JUDGING,
    LOCAL_ENGINES,
    MEASUREMENT,
    MODEL,
    OUTPUT,
    PROMPT,
    SERVERS,
    TORCH_AND_VLLM,
    add_options,
    in_group,
)
from assay.cli._groups import option as option
from assay.cli._problems import problem_options, with_selection
from assay.pipeline import EngineOptions
from assay.pipeline.config import MAX_TOKENS, MAX_TOKENS_THINKING, PRESETS, Sampling
from assay.types import PromptImports

if TYPE_CHECKING:
    from collections.abc import Callable


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


results_dir = option(
    "--results-dir",
    group=OUTPUT,
    type=click.Path(path_type=Path, file_okay=False),
    default="results",
    help="Folder for runs and results files.",
)
data_dir = option(
    "--data",
    "data_dir",
    group=DATA,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="ASSAY_DATA_DIR",
    help="Folder with benchmark data files, searched before the cache.",
)
resume = option(
    "--resume/--fresh",
    "resume",
    group=OUTPUT,
    default=True,
    help="Resume the newest run with the same settings, or start a new run.",
)
model_name = option(
    "--name",
    group=MODEL,
    default="",
    help="Name of the model in results. Default: the file or folder, with adapter, size and data "
    "type.",
)
text_limit = option(
    "--bytes",
    "limit",
    group=MEASUREMENT,
    type=int,
    default=0,
    help="Use only the first lines of the text, up to this many bytes; 0 uses all.",
)


class NumberRange(click.FloatRange):
    """A number in a range. FloatRange alone lets NaN pass, which is in every range and in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail."""
        found: float = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value} is not a number.", param, ctx)
        return found


margin = option(
    "--margin",
    group=MEASUREMENT,
    type=NumberRange(min=0, max=100, min_open=True),
    default=2.0,
    help="Largest difference in points that counts as equivalent.",
)
as_json = option("--json", "as_json", group=OUTPUT, is_flag=True, help="Print the output as JSON.")
prompt_imports = option(
    "--prompt-imports",
    group=JUDGING,
    type=click.Choice(get_args(PromptImports)),
    default="prepended",
    help="prepended: put the prompt's imports and helpers before every program; none: run "
    "programs without them, as EvalPlus does.",
)


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for running a model. The command gets ``engine``, an EngineOptions."""

    @functools.wraps(command)
    def with_engine(**options: Any) -> Any:
        names = [f.name for f in fields(EngineOptions) if f.name in options]
        engine = EngineOptions(**{name: options.pop(name) for name in names})
        return command(engine=engine, **options)

    general = in_group(
        MODEL,
        model_name,
        option("--parallel", type=int, default=0, help="Batch size; 0 chooses automatically."),
        option(
            "--batch-mode",
            type=click.Choice(["auto", "on", "off"]),
            default="auto",
            envvar=["ASSAY_BATCH_MODE", "APR_BATCH_MODE"],
            help="auto: batch if the engine can; on: fail if it cannot; off: run one prompt at a "
            "time.",
        ),
        option("--logprobs", is_flag=True, help="Record each completion's mean log-probability."),
        option(
            "--engine-option",
            "engine_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="Setting of this engine only, such as flash_attn_type=enabled for llama.cpp. The "
            "value is JSON or text. Can be repeated.",
        ),
    )
    prompt = in_group(
        PROMPT,
        option(
            "--prompt-form",
            type=click.Choice(["auto", "chat", "text"]),
            default="auto",
            help="Form of the prompts; auto uses chat if the model has a chat template, and text "
            "in assay run.",
        ),
    )
    local = in_group(
        LOCAL_ENGINES,
        option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            help="Device to run the model on; auto uses a GPU if the engine finds one.",
        ),
        option(
            "--devices",
            default="",
            metavar="LIST",
            help="GPUs to run the model on, such as 0,1. llama.cpp and torch run one process on "
            "each; vLLM splits the model. cpu,cpu runs two processes on the CPU. Default: one.",
        ),
        option(
            "--threads",
            type=int,
            default=0,
            help="Number of CPU threads; 0 uses one per available core.",
        ),
    )
    torch = in_group(
        TORCH_AND_VLLM,
        option(
            "--dtype",
            type=click.Choice(["", "float32", "bfloat16", "float16"]),
            default="",
            metavar="[float32|bfloat16|float16]",
            help="Data type to compute in. Default: float32 on a CPU, bfloat16 on a GPU.",
        ),
        option("--adapter", default="", help="Folder with LoRA weights to apply to the model."),
        option(
            "--revision", default="", help="Branch, tag or commit of a Hugging Face hub repository."
        ),
    )
    server = in_group(
        SERVERS,
        option(
            "--base-url",
            default="",
            help="URL of the server, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL.",
        ),
        option(
            "--timeout", type=float, default=300.0, help="Read timeout for a server in seconds."
        ),
        option(
            "--answer-timeout",
            type=float,
            default=0.0,
            help="Time limit for a server's whole answer in seconds; 0 means --timeout plus one "
            "second per token of --max-tokens.",
        ),
        option(
            "--requests-per-minute",
            type=int,
            default=0,
            help="Rate limit for requests to a server; 0 means no limit.",
        ),
        option(
            "--tokens-per-minute",
            type=int,
            default=0,
            help="Rate limit for prompt and generated tokens of a server; 0 means no limit.",
        ),
        option(
            "--price-in",
            type=float,
            default=0.0,
            help="Price of a million prompt tokens, for the cost in the result.",
        ),
        option(
            "--price-out",
            type=float,
            default=0.0,
            help="Price of a million generated tokens, for the cost in the result.",
        ),
    )
    return add_options(with_engine, *general, *prompt, *local, *torch, *server)


def sampling_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``Sampling``. The command gets one; options override the preset."""

    @functools.wraps(command)
    def with_preset(preset: str | None, **options: Any) -> Any:
        if preset is not None:
            source = click.get_current_context().get_parameter_source
            of_preset = asdict(PRESETS[preset]).items()
            options |= {n: v for n, v in of_preset if source(n) is ParameterSource.DEFAULT}
        settings = {field.name: options.pop(field.name) for field in fields(Sampling)}
        return command(sampling=Sampling(**settings), **options)

    sampling = in_group(
        PROMPT,
        option(
            "--preset",
            type=click.Choice(list(PRESETS)),
            help="greedy: one sample, temperature 0; pass1: 10 samples, temperature 0.8, top-k 40; "
            "pass10: 100 samples, otherwise as pass1. Explicit options override the preset.",
        ),
        option("--n-samples", type=int, default=1, help="Completions per problem or prompt."),
        option(
            "--temperature",
            type=float,
            help="Sampling temperature; 0 is greedy, and gives one sample. Default: 0 with one "
            "sample, 0.8 and top-k 40 with several.",
        ),
        option(
            "--top-k",
            type=int,
            help="Sample from the K likeliest tokens; 0 means no limit. Default: 40 if the "
            "temperature is above 0.",
        ),
        option(
            "--top-p",
            type=float,
            default=1.0,
            help="Sample from the likeliest tokens with this total probability; 1 means no limit.",
        ),
        option(
            "--min-p",
            type=float,
            default=0.0,
            help="Exclude tokens whose probability is below this share of the likeliest token's; "
            "0 means no limit.",
        ),
        option(
            "--repetition-penalty",
            type=float,
            default=1.0,
            help="Penalty for tokens already in the prompt or the completion; 1 means none.",
        ),
        option(
            "--max-tokens",
            type=int,
            help=f"Maximum tokens per completion. Default: {MAX_TOKENS}. In evaluations, the "
            "benchmark's own default, or "
            f"{MAX_TOKENS_THINKING} if the model's chat template supports reasoning.",
        ),
        option(
            "--seed",
            type=int,
            default=0,
            help="Seed for sampling; the seed of every sample is derived from it.",
        ),
    )
    return add_options(with_preset, *sampling)


def prompt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that change what a model is sent. Apply it above ``model_options``."""
    prompt = in_group(
        PROMPT,
        option(
            "--system", default="", help="System message before every conversation. Default: none."
        ),
        option(
            "--stop",
            multiple=True,
            metavar="TEXT",
            help="Stop word: text that ends a completion, in addition to the stop words of the "
            "prompt. Can be repeated.",
        ),
        option(
            "--thinking",
            default="",
            metavar="on|off|N",
            help="Whether the model reasons before it answers: on, off, or the maximum number of "
            "reasoning tokens. Default: the chat template decides.",
        ),
    )
    return add_options(command, *prompt)


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that executes programs.

    The command gets ``problems``, a ProblemSelection.
    """
    data = in_group(
        DATA,
        *problem_options,
        option("--split", default="", help="Part of the benchmark, such as train for mbpp."),
        data_dir,
    )
    judging = in_group(
        JUDGING,
        *sandbox_options,
        prompt_imports,
        option(
            "--check-references",
            is_flag=True,
            help="Run the reference solutions again instead of using cached verdicts.",
        ),
        option(
            "--select",
            default="",
            help="Also score the best of N samples per problem, chosen without the tests by the "
            f"method {list_choices(SELECTIONS)}. Default: none.",
        ),
        option(
            "--tests-seed",
            default="",
            help="Seed for tests with random inputs. Default: a new secret seed for every run.",
        ),
        option(
            "--time-limit",
            default=AUTO,
            metavar="auto|SECONDS",
            callback=parse_time_limit,
            help="CPU seconds per program: auto, or a number for all problems. auto derives the "
            "limit of each problem from the CPU time of its reference solution, if the benchmark "
            "has such a rule.",
        ),
        option(
            "--all-cases",
            is_flag=True,
            help="For programs that read standard input, run all cases and count how many are "
            "right. Default: stop at the first failed case.",
        ),
        option("--no-cache", is_flag=True, help="Ignore cached verdicts and completions."),
    )
    return add_options(with_selection(command), *data, *judging, results_dir, resume, as_json)
