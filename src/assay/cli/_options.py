"""Options that several commands share; each has an environment variable ``ASSAY_*``."""

from __future__ import annotations

import functools
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from assay.pipeline import EngineOptions, ProblemSelection
from assay.pipeline.config import MAX_TOKENS, MAX_TOKENS_THINKING, PRESETS, Sampling
from assay.types import PromptImports

if TYPE_CHECKING:
    from collections.abc import Callable


def option(flag: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """Return a click option that can also be set as ``ASSAY_<FLAG>``.

    Options of several commands share that variable only if they mean the same. Others have one
    with the name of the command: ``envvar="ASSAY_BENCH_SEED"``.
    """
    name = flag.split("/")[0].lstrip("-").replace("-", "_")
    settings.setdefault("envvar", f"ASSAY_{name.upper()}")
    settings.setdefault("show_envvar", True)
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(flag, *names, **settings)


results_dir = option(
    "--results-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default="results",
    help="Folder of runs and results.",
)
data_dir = option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="ASSAY_DATA_DIR",
    help="Folder with benchmark data, looked into first.",
)
resume = option(
    "--resume/--fresh",
    "resume",
    default=True,
    envvar="ASSAY_RESUME",
    help="Continue what was begun, if there is something, or start anew.",
)
model_name = option(
    "--name", envvar="ASSAY_NAME", default="", help="Name of the model in results; default: found "
    "from file, folder, adapter, size and number format.",
)  # fmt: skip
as_json = option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
prompt_imports = option(
    "--prompt-imports",
    type=click.Choice(get_args(PromptImports)),
    default="prepended",
    help="prepended: imports and helpers of the prompt stand before every program; none: a "
    "program must bring what it needs, as in EvalPlus.",
)


def modelling(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a model is run: the command gets ``engine``, an EngineOptions."""

    @functools.wraps(command)
    def with_engine(**asked: Any) -> Any:
        names = [f.name for f in fields(EngineOptions) if f.name in asked]
        engine = EngineOptions(**{name: asked.pop(name) for name in names})
        return command(engine=engine, **asked)

    decorated: Callable[..., Any] = with_engine
    for one in (
        option(
            "--batch-mode",
            type=click.Choice(["auto", "on", "off"]),
            default="auto",
            envvar=["ASSAY_BATCH_MODE", "APR_BATCH_MODE"],
            help="off: one prompt at a time; on: an error if the engine cannot batch.",
        ),
        option("--parallel", type=int, default=0, help="Sequences at a time; 0: as many as pay."),
        option(
            "--threads",
            type=int,
            default=0,
            help="Threads that compute on a CPU; 0: one per usable core.",
        ),
        option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            help="auto: a GPU if the engine can use one here.",
        ),
        option(
            "--dtype",
            type=click.Choice(["", "float32", "bfloat16", "float16"]),
            default="",
            help="Number format of the hf engine; default: float32 on a CPU, bfloat16 on a GPU.",
        ),
        option("--adapter", default="", help="Folder of LoRA weights to put on the model."),
        option(
            "--prompt-form",
            type=click.Choice(["auto", "chat", "text"]),
            default="auto",
            help="auto: chat if the model has a chat template.",
        ),
        model_name,
        option("--base-url", default="", help="Of the server, for the openai engine."),
        option("--logprobs", is_flag=True, help="Record each completion's mean log-probability."),
        option(
            "--timeout", type=float, default=300.0, help="Seconds without a word from the server."
        ),
        option(
            "--answer-timeout",
            type=float,
            default=0.0,
            help="Total time limit per answer of a server in seconds; 0: --timeout plus one second "
            "per token of --max-tokens.",
        ),
        option("--requests-per-minute", type=int, default=0, help="Sent to a server; 0: any."),
        option("--tokens-per-minute", type=int, default=0, help="Of a server, in and out; 0: any."),
        option("--price-in", type=float, default=0.0, help="Of a million prompt tokens."),
        option("--price-out", type=float, default=0.0, help="Of a million generated tokens."),
        option("--revision", default="", help="Branch, tag or commit of a hub id."),
        option(
            "--engine-option",
            "engine_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="Setting that only this engine has; the value is JSON or text. Can be repeated.",
        ),
    )[::-1]:
        decorated = one(decorated)
    return decorated


def sampling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``Sampling``: the command gets one; options beat the preset."""

    @functools.wraps(command)
    def with_preset(preset: str | None, **asked: Any) -> Any:
        if preset is not None:
            source = click.get_current_context().get_parameter_source
            of_preset = asdict(PRESETS[preset]).items()
            asked |= {n: v for n, v in of_preset if source(n) is ParameterSource.DEFAULT}
        settings = {field.name: asked.pop(field.name) for field in fields(Sampling)}
        return command(sampling=Sampling(**settings), **asked)

    decorated: Callable[..., Any] = with_preset
    for one in (
        option(
            "--preset",
            type=click.Choice(list(PRESETS)),
            help="greedy: one sample, temperature 0; pass1: 10, pass10: 100 samples, temperature "
            "0.8, top-k 40. Options beside it beat it.",
        ),
        option("--n-samples", type=int, default=1, help="Completions per problem or prompt."),
        option("--temperature", type=float, default=0.0, help="0 is greedy."),
        option(
            "--top-k",
            type=int,
            help="Default 40 when the temperature is above 0; 0 means no cut.",
        ),
        option(
            "--top-p",
            type=float,
            default=1.0,
            help="Sample from the likeliest tokens with this total probability; 1 means no cut.",
        ),
        option(
            "--min-p",
            type=float,
            default=0.0,
            help="Leave out tokens less likely than this share of the likeliest; 0 means no cut.",
        ),
        option(
            "--repetition-penalty",
            type=float,
            default=1.0,
            help="Penalty for tokens of the prompt and of the text so far; 1 means none.",
        ),
        option(
            "--max-tokens",
            type=int,
            help=f"Longest completion; default {MAX_TOKENS}, in evaluations {MAX_TOKENS_THINKING} "
            "for a model whose chat template lets it think.",
        ),
        option(
            "--seed", type=int, default=0, help="Of sampling; each sample gets its own from it."
        ),
    )[::-1]:
        decorated = one(decorated)
    return decorated


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that change what a model is sent. Stands above ``modelling``."""
    for one in (
        option("--system", default="", help="System message before every conversation."),
        option(
            "--stop",
            multiple=True,
            metavar="TEXT",
            help="Text that ends a completion, besides the strategy's own. Can be repeated.",
        ),
        option(
            "--thinking",
            default="",
            metavar="on|off|N",
            help="Whether the model thinks before it answers, or at most N tokens of thought; "
            "default: as its chat template does.",
        ),
    )[::-1]:
        command = one(command)
    return command


def judging(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that executes programs.

    The command gets ``problems``, a ProblemSelection.
    """

    @functools.wraps(command)
    def with_problems(
        problems: str, tasks: tuple[str, ...], tasks_file: Path | None, **others: Any
    ) -> Any:
        return command(problems=ProblemSelection(problems, tasks, tasks_file), **others)

    decorated: Callable[..., Any] = with_problems
    for one in (
        option(
            "--problems",
            "--samples",
            "problems",
            default="0",
            metavar="N|A:B",
            envvar=["ASSAY_PROBLEMS", "ASSAY_SAMPLES"],
            help="Only the first N problems, or those from A up to B; 0 selects all.",
        ),
        option(
            "--task",
            "tasks",
            multiple=True,
            metavar="ID",
            help="Only the problem with this task id; can be repeated.",
        ),
        option(
            "--from-file",
            "tasks_file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Only the problems whose task ids are listed in this file, one per line.",
        ),
        option("--split", default="", help="Part of the benchmark, such as train of mbpp."),
        option("--sandbox", default="process", help="Where programs are executed."),
        option("--sandbox-tier", default="auto", help="Least isolation: root, user, landlock."),
        option(
            "--workers", type=int, default=0, help="Programs judged at a time; 0: one per core."
        ),
        prompt_imports,
        option("--check-references", is_flag=True, help="Run the reference solutions once more."),
        option(
            "--select",
            default="",
            help="Score one chosen sample a problem too: first, logprob, examples, agreement.",
        ),
        option(
            "--tests-seed",
            default="",
            help="Seed of tests that draw their inputs; empty draws a secret one for each run.",
        ),
        option("--no-cache", is_flag=True, help="Execute also what was executed before."),
        data_dir,
        results_dir,
        resume,
        as_json,
    )[::-1]:
        decorated = one(decorated)
    return decorated
