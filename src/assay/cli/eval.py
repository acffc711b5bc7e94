"""``assay eval``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from assay import api, runs
from assay.cli._groups import (
    GPU_CHECKS,
    MEASUREMENT,
    MODEL,
    PROMPT,
    GroupedCommand,
    option,
    switch,
)
from assay.cli._option_sets import (
    judging_options,
    model_options,
    prompt_options,
    sampling_options,
)
from assay.cli._options import ENGINES, STRATEGIES, list_choices, margin, open_site, parity_gate
from assay.cli._options import ray as ray_option
from assay.cli._output import INCOMPLETE, echo, echo_json, echo_result
from assay.cli.suite import show_suite
from assay.data import codec
from assay.errors import RunError, UsageError
from assay.pipeline import EvalConfig, Until
from assay.pipeline.suite.suite import expand_suites, suite_of
from assay.report.summary import summarize, summarize_strategies
from assay.runs.compare import share_problems
from assay.runs.marks import require_publishable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.runs import Result


class ModelReferences(click.ParamType[str]):
    """A model as users name it. In the environment variable, each is on its own line."""

    name = "text"
    envvar_list_splitter = "\n"


@click.command("eval", cls=GroupedCommand)
@click.argument("benchmark", nargs=-1, required=True, metavar="BENCHMARK...")
@option(
    "--model",
    "Model file, Hugging Face folder, ENGINE:REFERENCE such as hf:OWNER/NAME, or default for the "
    f"built-in model. Engines: {', '.join(ENGINES)}. Can be repeated.",
    group=MODEL, default=("default",), multiple=True, type=ModelReferences(),
    show_default="default",
)  # fmt: skip
@sampling_options
@prompt_options
@option(
    "--prompt-strategy",
    f"Prompt strategy: {list_choices(STRATEGIES)}; all evaluates and compares all of them. "
    "upstream and upstream-cot are the prompts of the benchmark's authors, if it has them. default "
    "is the benchmark's own choice, which reproduces published scores.",
    group=PROMPT,
    default="default",
)
@switch(
    "--publishable",
    "Fail unless all problems were judged, and a GPU that passed the parity gate made all "
    "completions.",
    group=GPU_CHECKS,
)
@parity_gate
@option(
    "--until",
    "Add samples in rounds until the comparison with --against is decided. --n-samples sets "
    "the maximum. Default: the number of samples of the baseline.",
    group=MEASUREMENT,
    type=click.Choice(["decided"]),
)
@option(
    "--against",
    "Baseline for --until: a results file, or the name of a run as listed by `assay history`.",
    group=MEASUREMENT, default="", metavar="RUN",
)  # fmt: skip
@margin
@ray_option
@model_options
@judging_options
def evaluate(
    benchmark: tuple[str, ...], model: tuple[str, ...], resume: bool, as_json: bool,
    publishable: bool, parity_gate: bool, until: str | None, against: str, margin: float, ray: str,
    **settings: Any,
) -> None:  # fmt: skip
    """Evaluate a model on BENCHMARK: generate, execute in the sandbox, score.

    BENCHMARK is a name that `assay benchmarks` lists, or a YAML or JSONL file of your own. With
    several benchmarks or models, each model is loaded once for all of them. A named suite such as
    core stands for several benchmarks.

    \b
    Examples:
      assay eval humaneval
      assay eval humaneval --model model.gguf --preset pass1
      assay eval humaneval --prompt-strategy all
      assay eval humaneval humanevalplus --model a.gguf --model b.gguf
      assay eval core --model a.gguf
      assay eval ./mine.yaml --model a.gguf
      assay eval humaneval --preset pass1 --until decided --against BASELINE
      assay eval humaneval --model a.gguf --ray HEAD:6379
    """
    benchmark = expand_suites(benchmark)
    if (until is None) != (not against):
        raise UsageError("--until and --against: belong together. Give both, or neither.")
    config = EvalConfig(
        benchmark=benchmark[0], model=model[0], fresh=not resume,
        until=Until(against, margin / 100) if until else None, **settings,
    )  # fmt: skip
    if len(benchmark) > 1 or len(model) > 1:
        if until:
            raise UsageError("--until: needs one benchmark and one model. Give one of each.")
        if len(model) > 1 and config.engine.name:
            raise UsageError("--name: applies to one model. To name several, write a suite file.")
        suite = suite_of(config, benchmark, model)
        with open_site("eval", ray, quiet=as_json) as (display, site):
            base = dataclasses.replace(config, site=site)
            done = api.evaluate_suite(
                suite, base, display, publishable=publishable, parity_gate=parity_gate
            )
        show_suite(done, as_json=as_json, publishable=publishable)
        return
    with open_site(config.benchmark, ray, quiet=as_json) as (display, site):
        results = api.run_evaluation(
            dataclasses.replace(config, site=site), display, publishable=publishable,
            parity_gate=parity_gate,
        )  # fmt: skip
    if len(results) > 1:
        show_all(results, as_json=as_json)
    else:
        show(results[0], as_json=as_json)
    if publishable:
        require_publishable(results)
    exit_if_incomplete(results)


def exit_if_incomplete(results: Sequence[Result]) -> None:
    """Exit with code 3 if a score covers fewer samples than requested."""
    if not all(result.complete for result in results):
        click.get_current_context().exit(INCOMPLETE)


def show_all(results: Sequence[Result], *, as_json: bool) -> None:
    """Print one table of several results, or all of them as JSON with their comparisons."""
    if not as_json:
        echo(*summarize_strategies(results))
        return
    comparable = [other for other in results[1:] if share_problems(results[0], other)]
    members = runs.compare_family(results[0], comparable).members if comparable else ()
    compared = [
        {**codec.to_json(m.comparison), "adjusted_p_value": m.adjusted_p_value} for m in members
    ]
    echo_json({"results": list(map(runs.render_result, results)), "comparisons": compared})


def show(result: Result, *, as_json: bool) -> None:
    """Print a result. Raise RunError if no sample could be judged."""
    echo_result(runs.render_result(result), lambda: summarize(result), as_json=as_json)
    if not result.pass_at:
        raise RunError(
            f"{result.path}: no sample could be judged. See verdicts.jsonl in the run's folder."
        )
