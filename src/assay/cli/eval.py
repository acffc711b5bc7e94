"""``assay eval``."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import click

from assay import codec, runs
from assay.cli._format import (
    INCOMPLETE,
    LEFT_OUT_NOTE,
    benchmark_name,
    counts,
    describe_gap,
    describe_left_out,
    interval,
    percent,
    score,
    table,
)
from assay.cli._options import asking, judging, modelling, option, sampling
from assay.cli._output import echo, echo_json
from assay.cli._progress import ProgressDisplay
from assay.errors import RunError
from assay.pipeline import ALL, EvalConfig, Evaluation, evaluate_all
from assay.pipeline import evaluate as run_evaluation
from assay.pipeline.asking import DEFAULT_THINKING
from assay.quality.parity_gate import require_parity

if TYPE_CHECKING:
    from pathlib import Path


@click.command("eval")
@click.argument("benchmark")
@option(
    "--model", default="default", help="A model file, engine:reference, or the built-in default."
)
@sampling
@asking
@option(
    "--prompt-strategy",
    default="standard",
    help="How the problem is put to the model; all: every way in turn, compared.",
)
@option("--publishable", is_flag=True, help="Refuse what no result may be published of: CPUs.")
@option(
    "--parity-gate/--no-parity-gate",
    "parity_gate",
    default=True,
    help="First compare a GPU's logits with the CPU's, once for a model and a device.",
)
@modelling
@judging
def evaluate(
    benchmark: str, results_dir: Path, resume: bool, as_json: bool, publishable: bool,
    parity_gate: bool, **asked: Any,
) -> None:  # fmt: skip
    """Evaluate a model on BENCHMARK: generate, execute in the sandbox, score.

    \b
    Examples:
      assay eval humaneval
      assay eval humaneval --model model.gguf --preset pass1
      assay eval humaneval --prompt-strategy all
    """
    config = EvalConfig(benchmark=benchmark, results_dir=results_dir, fresh=not resume, **asked)
    with ProgressDisplay(benchmark, quiet=as_json) as display:
        gate = functools.partial(
            require_parity, config.model, config.engine, publishable=publishable,
            wanted=parity_gate, note=display.note,
        )  # fmt: skip
        config = dataclasses.replace(config, gate=gate)
        if config.prompt_strategy == ALL:
            evaluations = evaluate_all(config, display)
            show_all(evaluations, as_json=as_json)
            _require_publishable(publishable, evaluations)
            exit_if_incomplete(evaluations)
            return
        evaluation = run_evaluation(config, display)
    show(evaluation, as_json=as_json)
    _require_publishable(publishable, [evaluation])
    exit_if_incomplete([evaluation])


def _require_publishable(wanted: bool, evaluations: list[Evaluation]) -> None:
    """Raise RunError if a result that was to be published lacks something, whatever it is."""
    obstacles = [reason for e in evaluations for reason in e.result["not_publishable"]]
    if wanted and obstacles:
        raise RunError(
            f"the result is not publishable: {'; '.join(dict.fromkeys(obstacles))}. "
            "Evaluate again with --fresh --publishable."
        )


def exit_if_incomplete(evaluations: list[Evaluation]) -> None:
    """End the command with an exit code of its own if a score is about less than was asked for."""
    if not all(evaluation.result["coverage"]["complete"] for evaluation in evaluations):
        click.get_current_context().exit(INCOMPLETE)


def show_all(evaluations: list[Evaluation], *, as_json: bool) -> None:
    """One table; differences are those to the first, problem by problem."""
    first, *others = (evaluation.result for evaluation in evaluations)
    found = [runs.compare(first, other) for other in others]
    if as_json:
        results = [evaluation.result for evaluation in evaluations]
        compared = [codec.to_json(comparison) for comparison in found]
        echo_json({"results": results, "comparisons": compared})
        return
    against = first["config"]["prompt_strategy"]
    rows = [("strategy", "pass@1", "95 %", f"to {against}", "gained", "lost", "p", "run")]
    for result, comparison in zip([first, *others], [None, *found], strict=True):
        rows.append((*_scored(result), *_compared(comparison), result["run"]))
    echo(f"{benchmark_name(first)} · {first['model']} · n={first['config']['num_samples']}")
    for result in (first, *others):
        if gap := describe_gap(result):
            echo(f"incomplete: {result['config']['prompt_strategy']}, {gap}")
    echo(*table(rows))
    if any("left_out_as_failed" in e.result["results"] for e in evaluations):
        echo(LEFT_OUT_NOTE)


def _scored(result: dict[str, Any]) -> tuple[str, str, str]:
    results = result["results"]
    shown = score(results, "pass_at_1")
    return result["config"]["prompt_strategy"], shown, interval(results, "pass_at_1")


def _compared(found: runs.Comparison | None) -> tuple[str, str, str, str]:
    if found is None or found.difference is None:
        return "-", "-", "-", "-"
    points = f"{100 * found.difference:+.1f} points"
    return points, str(len(found.gained)), str(len(found.lost)), f"{found.p_value:.3g}"


def show(evaluation: Evaluation, *, as_json: bool) -> None:
    if as_json:
        echo_json(evaluation.result)
    else:
        echo(*_summary(evaluation))
    if "pass_at_1" not in evaluation.result["results"]:
        raise RunError(f"no sample could be judged: see verdicts.jsonl beside {evaluation.path}")


def _summary(evaluation: Evaluation) -> list[str]:
    result = evaluation.result
    results = result["results"]
    lines = [" · ".join([benchmark_name(result), result["model"], *_settings(result)])]
    gap = describe_gap(result)
    if gap:
        lines.insert(0, f"incomplete: {gap}; the score is about these alone")
    for name, found in results["intervals"].items():
        lines.append(
            f"  {name.replace('_at_', '@'):<9} {percent(results[name])}  "
            f"{interval(results, name)} (95 %), {found['problems']} problems"
            f"{describe_left_out(results, name)}"
        )
    for group, found in list(results["groups"].items())[:-1]:
        if "pass_at_1" in found:
            lines.append(
                f"  {group:<9} {percent(found['pass_at_1'])}  {interval(found, 'pass_at_1')} "
                f"pass@1 on the {group} tests alone"
            )
    if best := results.get("best_of_n"):
        found, without = best["interval"], best["without_examples"]
        lines.append(
            f"  best of {best['n']} {percent(best['value'])}  "
            f"[{100 * found['low']:.1f}, {100 * found['high']:.1f}] by {best['method']}"
            + (f", {without} problems without examples" if without else "")
        )
    if unscorable := results["unscorable"]:
        lines.append(f"  unscorable {', '.join(unscorable)}: the reference fails here")
    if unsupported := results["unsupported"]:
        told = ", ".join(f"{task} ({what})" for task, what in unsupported.items())
        lines.append(f"  unsupported {told}: the sandbox cannot run it")
    lines += [
        f"  verdicts  {counts(results['reasons'])}",
        f"  invalid   {results['invalid']}",
        *_integrity(results["integrity"]),
        *_model(result["model_identity"]),
        *_marked(result),
        *_bill(result["timing"]),
        f"  protocol  {result['protocol']['hash'][:12]}{' (incomplete)' if gap else ''}",
        f"  results   {evaluation.path}",
    ]
    return lines


def _settings(result: dict[str, Any]) -> list[str]:
    """Return how the samples were asked for and judged; usual settings are not mentioned."""
    config, protocol = result["config"], result["protocol"]
    count = f"n={config['num_samples']}"
    imports = protocol["prompt_imports"]
    judging = [f"prompt imports {imports}"] if imports != "prepended" else []
    judging += [f"judged by {protocol['judge']}"] if protocol.get("judge") else []
    if protocol["origin"]:
        return ["recorded elsewhere", count, *judging]
    unusual = [
        f"{name.replace('_', '-')} {config[name]:g}"
        for name, usual in (("top_p", 1), ("min_p", 0), ("repetition_penalty", 1))
        if config[name] != usual
    ]
    sampling = f"temperature {config['temperature']:g}" if config["temperature"] else "greedy"
    asking = [f"thinking {config['thinking']}"] if config["thinking"] != DEFAULT_THINKING else []
    asking += ["system prompt"] if config["system"] else []
    asking += config["engine_options"]
    form = config["prompt_form"]
    return [config["prompt_strategy"], form, sampling, *unusual, *asking, count, *judging]


def _model(identity: dict[str, Any]) -> list[str]:
    """Return where the model was found, and enough of its digest to tell it from others."""
    where, digest = identity.get("path") or identity["name"], identity["weights_sha256"][:12]
    return [f"  model     {where} ({identity['engine']}, weights {digest})"]


def _integrity(verdicts: dict[str, int]) -> list[str]:
    """Return what to know if programs and their tests shared an interpreter."""
    if not (shared := verdicts.get("shared", 0)):
        return []
    total = shared + verdicts.get("separated", 0)
    return [f"  integrity shared: {shared} of {total} verdicts could be forged by their program"]


def _marked(result: dict[str, Any]) -> list[str]:
    """Return what is missing for a publication, a line each."""
    obstacles = result["not_publishable"]
    return [f"  marked    not publishable: {reason}" for reason in obstacles]


def _bill(timing: dict[str, Any]) -> list[str]:
    if timing["cost"] is None:
        return []
    tokens = f"{timing['prompt_tokens']:,} tokens in, {timing['tokens_generated']:,} out"
    return [f"  cost      {timing['cost']:.4f} for {tokens}"]
