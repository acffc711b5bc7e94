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


def list_choices(names: tuple[str, ...]) -> str:
    """Return names as ``a, b or c``."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


# Choices that help texts list. The registries would import every plug-in for each command;
# tests/test_options.py compares these names with them.
SANDBOXES = ("process", "docker", "wasm")
TIERS = ("auto", "root", "user", "landlock")
SELECTIONS = ("first", "logprob", "examples", "agreement")
STRATEGIES = ("standard", "cgo", "few-shot", "scot")
JUDGES = ("assay", "evalplus")
ENGINES = ("apr", "apr-cli", "gguf", "hf", "openai", "replay", "vllm")
TIER_HELP = f"Isolation tier: {list_choices(TIERS)}. auto uses the strongest available."


results_dir = option(
    "--results-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default="results",
    help="Folder for runs and results files.",
)
data_dir = option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="ASSAY_DATA_DIR",
    help="Folder with benchmark data files, searched before the cache.",
)
resume = option(
    "--resume/--fresh",
    "resume",
    default=True,
    envvar="ASSAY_RESUME",
    help="Resume the newest run with the same settings, or start a new run.",
)
model_name = option(
    "--name", envvar="ASSAY_NAME", default="", help="Name of the model in results; default: made "
    "from its file or folder, adapter, size and number format.",
)  # fmt: skip
text_limit = option(
    "--bytes",
    "limit",
    type=int,
    default=0,
    help="Use only the first lines of the text, up to this many bytes; 0 uses all.",
)
margin = option(
    "--margin",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=2.0,
    help="Largest difference in points that counts as equivalent.",
)
as_json = option("--json", "as_json", is_flag=True, help="Print the output as JSON.")
prompt_imports = option(
    "--prompt-imports",
    type=click.Choice(get_args(PromptImports)),
    default="prepended",
    help="prepended: put imports and helpers of the prompt before every program; none: run "
    "programs without them, as EvalPlus does.",
)


def modelling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for running a model. The command gets ``engine``, an EngineOptions."""

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
            help="auto: batch if the engine can; on: fail if it cannot; off: run one prompt at a "
            "time.",
        ),
        option("--parallel", type=int, default=0, help="Batch size; 0 chooses automatically."),
        option(
            "--threads",
            type=int,
            default=0,
            help="Number of CPU threads; 0 uses one per available core.",
        ),
        option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            help="Device to run the model on; auto uses a GPU if the engine finds one.",
        ),
        option(
            "--dtype",
            type=click.Choice(["", "float32", "bfloat16", "float16"]),
            default="",
            help="Number format of the hf engine; default: float32 on a CPU, bfloat16 on a GPU.",
        ),
        option("--adapter", default="", help="Folder with LoRA weights to apply to the model."),
        option(
            "--prompt-form",
            type=click.Choice(["auto", "chat", "text"]),
            default="auto",
            help="Form of the prompts; auto uses chat if the model has a chat template.",
        ),
        model_name,
        option("--base-url", default="", help="URL of the server for the openai engine."),
        option("--logprobs", is_flag=True, help="Record each completion's mean log-probability."),
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
        option("--price-in", type=float, default=0.0, help="Price of a million prompt tokens."),
        option("--price-out", type=float, default=0.0, help="Price of a million generated tokens."),
        option(
            "--revision", default="", help="Branch, tag or commit of a Hugging Face hub repository."
        ),
        option(
            "--engine-option",
            "engine_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="Setting specific to the engine; the value is JSON or text. Can be repeated.",
        ),
    )[::-1]:
        decorated = one(decorated)
    return decorated


def sampling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``Sampling``. The command gets one; options override the preset."""

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
            "0.8, top-k 40. Explicit options override the preset.",
        ),
        option("--n-samples", type=int, default=1, help="Completions per problem or prompt."),
        option("--temperature", type=float, default=0.0, help="Sampling temperature; 0 is greedy."),
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
            help="Exclude tokens less likely than this share of the likeliest; 0 means no limit.",
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
            help=f"Maximum tokens per completion; default: {MAX_TOKENS}, or in evaluations "
            f"{MAX_TOKENS_THINKING} if the model's chat template lets it think.",
        ),
        option(
            "--seed",
            type=int,
            default=0,
            help="Seed for sampling; every sample's own seed is derived from it.",
        ),
    )[::-1]:
        decorated = one(decorated)
    return decorated


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that change what a model is sent. Apply it above ``modelling``."""
    for one in (
        option("--system", default="", help="System message before every conversation."),
        option(
            "--stop",
            multiple=True,
            metavar="TEXT",
            help="Text that ends a completion, in addition to the strategy's own. Can be repeated.",
        ),
        option(
            "--thinking",
            default="",
            metavar="on|off|N",
            help="Whether the model thinks before it answers, or the maximum tokens of thought; "
            "default: what its chat template does.",
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
        option("--split", default="", help="Part of the benchmark, such as train for mbpp."),
        option("--sandbox", default="process", help=f"Sandbox kind: {list_choices(SANDBOXES)}."),
        option("--sandbox-tier", default="auto", help=TIER_HELP),
        option(
            "--workers",
            type=int,
            default=0,
            help="Number of programs to judge at a time; 0 uses one per core.",
        ),
        prompt_imports,
        option(
            "--check-references",
            is_flag=True,
            help="Run the reference solutions again instead of using cached verdicts.",
        ),
        option(
            "--select",
            default="",
            help="Also score one sample per problem, chosen without the tests by "
            f"{list_choices(SELECTIONS)}. Default: none.",
        ),
        option(
            "--tests-seed",
            default="",
            help="Seed for tests with random inputs. Default: a new secret seed for every run.",
        ),
        option("--no-cache", is_flag=True, help="Ignore cached verdicts."),
        data_dir,
        results_dir,
        resume,
        as_json,
    )[::-1]:
        decorated = one(decorated)
    return decorated
