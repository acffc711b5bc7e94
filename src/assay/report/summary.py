"""Render results and comparisons as lines of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.data.printable import quantity
from assay.protocol import Difference, RecordedProtocol
from assay.report import text
from assay.runs import Comparison, Result, compare_family
from assay.runs.compare import FamilyMember, share_problems
from assay.runs.marks import list_marks
from assay.runs.result import (
    BreakdownResult,
    ConfigResult,
    CrossCheck,
    SequentialResult,
)
from assay.scoring.estimates import MeasureScore

DIGEST = re.compile("[0-9a-f]{64}")
USUAL_THINKING = "default"


def summarize(result: Result) -> list[str]:
    """Return the lines that a command prints for its result."""
    results = result.results
    gap = text.describe_gap(result.coverage)
    lines = [f"incomplete: {gap}. The score covers only these."] if gap else []
    settings = describe_settings(result.config, result.protocol)
    lines.append(" · ".join([text.benchmark_name(result), result.model, *settings]))
    for k, one in results.pass_at.items():
        problems = quantity(one.problems, "problem")
        left_out = text.describe_left_out(results, k)
        shown = f"{text.show_estimate(one)} ({text.level(one)})"
        lines.append(f"  {f'pass@{k}':<9} {shown}, {problems}{left_out}")
    for name, group in list(results.groups.items())[:-1]:
        if 1 in group.pass_at:
            shown = text.show_estimate(group.pass_at[1])
            lines.append(f"  {name:<9} {shown} pass@1 on the {name} tests alone")
    if best := results.best_of_n:
        examples = quantity(best.without_examples, "problem")
        without = f", {examples} without examples" if best.without_examples else ""
        shown = text.show_estimate(best.estimate)
        lines.append(f"  best of {best.n} {shown} by {best.method}{without}")
    if matches := results.infilling:
        exact, similar = map(text.show_estimate, (matches.exact_match, matches.edit_similarity))
        lines.append(f"  exact     {exact} filled in exactly what was there")
        lines.append(f"  similar   {similar} edit similarity to what was there")
    lines += [_measure(name, estimate) for name, estimate in results.measures.items()]
    for label, values in results.breakdowns.items():
        lines += _breakdown(label, values)
    if result.sequential and result.sequential.looks:
        lines.append(_sequential(result.sequential))
    if results.unscorable:
        lines.append(f"  unscorable {', '.join(results.unscorable)}: the reference fails here")
    if results.unsupported:
        tasks = ", ".join(f"{task} ({what})" for task, what in results.unsupported.items())
        lines.append(f"  unsupported {tasks}: the sandbox cannot run it")
    return [
        *lines,
        f"  verdicts  {text.counts(results.reasons)}",
        f"  invalid   {results.invalid}",
        *(f"  advice    {line}" for line in filter(None, [text.advise_on_form(result)])),
        *_origin(result),
        f"  protocol  {result.protocol.hash[:12]}{' (incomplete)' if gap else ''}",
        f"  results   {result.path}",
    ]


def _measure(name: str, measure: MeasureScore) -> str:
    """Return the line of a number that programs have beside their verdict."""
    ends = ""
    if measure.low is not None and measure.high is not None:
        ends = f"  [{100 * measure.low:.1f}, {100 * measure.high:.1f}] ({100 * measure.level:g} %)"
    left_out = (
        f", {quantity(measure.unmeasured, 'program')} not measured" if measure.unmeasured else ""
    )
    return (
        f"  {name} {100 * measure.value:.1f} %{ends}, passed programs of "
        f"{quantity(measure.problems, 'problem')}{left_out}"
    )


def _breakdown(label: str, values: Mapping[str, BreakdownResult]) -> list[str]:
    """Return a table of the scores by the values of a label."""
    rows = [
        (value, text.percent_of(one.pass_at[1]), text.interval(one.pass_at[1]), str(one.problems))
        for value, one in values.items()
        if 1 in one.pass_at
    ]
    heading = (f"by {label}", "pass@1", "interval", "problems")
    return [f"  {line}" for line in text.table([heading, *rows])]


def _sequential(result: SequentialResult) -> str:
    last = result.looks[-1]
    ends = text.signed_interval(last.interval)
    return (
        f"  {result.decision:<9} compared with {result.baseline_model} ({result.baseline}) on "
        f"these problems: {100 * (last.gained - last.lost) / last.pairs:+.1f} points {ends}, after "
        f"{last.rounds} of {result.budget} rounds"
    )


def describe_settings(config: ConfigResult, protocol: RecordedProtocol) -> list[str]:
    """Return how the samples were generated and judged, without default settings."""
    count = f"n={config.num_samples}"
    imports = protocol.prompt_imports or "prepended"
    judging = [f"prompt imports {imports}"] if imports != "prepended" else []
    judging += [f"judged by {protocol.judge}"] if protocol.judge else []
    if protocol.origin:
        return ["recorded elsewhere", count, *judging]
    return [config.prompt_strategy, *_asking(config), count, *judging]


def _asking(config: ConfigResult) -> list[str]:
    decoding, asking = config.decoding, config.asking
    unusual = [
        f"{name} {value:g}"
        for name, value, usual in (
            ("top-p", decoding.top_p, 1),
            ("min-p", decoding.min_p, 0),
            ("repetition-penalty", decoding.repetition_penalty, 1),
        )
        if value != usual
    ]
    sampling = f"temperature {decoding.temperature:g}" if decoding.temperature else "greedy"
    if asking is None:  # by an earlier version
        return [sampling, *unusual]
    thinking = [f"thinking {asking.thinking}"] if asking.thinking != USUAL_THINKING else []
    system = ["system prompt"] if asking.system else []
    return [asking.prompt_form, sampling, *unusual, *thinking, *system, *asking.engine_options]


def _origin(result: Result) -> list[str]:
    """Return the model with the beginning of its digest, the marks, and what the run cost."""
    identity, timing, lines = result.model_identity, result.timing, []
    if identity:
        where, digest = identity.path or identity.name, identity.weights_sha256[:12]
        lines.append(f"  model     {where} ({identity.engine}, weights {digest})")
    for one in list_marks(result):
        blocked = " (not publishable)" if one.mark.blocks else ""
        lines.append(f"  marked    {text.label_mark(one.name)}{blocked}: {one.detail}")
    if timing.cost is not None:
        tokens = f"{timing.prompt_tokens:,} tokens in, {timing.tokens_generated:,} out"
        lines.append(f"  cost      {timing.cost:.4f} for {tokens}")
    if times := text.describe_times(timing):
        lines.append(f"  time      {times}")
    if timing.reused:
        samples = f"{timing.reused} of {result.results.samples} completions"
        lines.append(f"  reused    {samples} (--fresh generates them again)")
    return lines


def summarize_checks(result: Result, rounds: int) -> list[str]:
    """Return the lines for the checks of a score.

    ``rounds`` is how often everything was executed again.
    """
    lines = _cross_check(result.cross_check) if result.cross_check else []
    if rounds and result.flaky is not None:
        changed, again = quantity(len(result.flaky), "sample"), quantity(rounds, "more execution")
        lines.append(f"  flaky     {changed} changed in {again}")
        for sample, statuses in result.flaky.items():
            lines.append(f"            {sample}: {', '.join(statuses)}")
    if result.extraction is not None:
        lines.append("  without   samples that change, passes lost, passes gained")
        for rule in result.extraction:
            lines.append(f"  {rule.rule:<12}{rule.samples:>6}{rule.lost:>8}{rule.gained:>8}")
    return lines


def _cross_check(check: CrossCheck) -> list[str]:
    unexplained = sum(not one.explained for one in check.disagreements)
    lines = [
        f"  {check.engine:<9} {len(check.disagreements)} of {check.samples} verdicts differ, "
        f"{unexplained} unexplained"
    ]
    for one in check.disagreements:
        why = f" ({one.explained})" if one.explained else ""
        lines += [
            f"            {one.task_id}#{one.sample}  ours {one.ours[:120]}",
            f"            {'':<{len(one.task_id) + 2}}  theirs {one.theirs}{why}",
        ]
    return lines


def summarize_strategies(results: Sequence[Result]) -> list[str]:
    """Return one table. Differences are relative to the first result, problem by problem.

    The p-values are corrected for the number of strategies by Holm's method.
    """
    first = results[0]
    against = first.config.prompt_strategy
    shown_level = text.level(first.pass_at[1]) if 1 in first.pass_at else "interval"
    rows = [
        ("strategy", "pass@1", shown_level, f"to {against}", "gained", "lost", "p", "run", "marks")
    ]
    comparable = [result for result in results[1:] if share_problems(first, result)]
    members = compare_family(first, comparable).members if comparable else ()
    compared = {member.comparison.run_b: member for member in members}
    for result in results:
        rows.append(
            (
                result.config.prompt_strategy, text.score(result.results, 1),
                text.interval(result.pass_at.get(1)), *_compared(compared.get(result.run)),
                result.run, text.label_marks(result.marks),
            )
        )  # fmt: skip
    lines = [f"{text.benchmark_name(first)} · {first.model} · n={first.config.num_samples}"]
    for result in results:
        if gap := text.describe_gap(result.coverage):
            lines.append(f"incomplete: {result.config.prompt_strategy}, {gap}")
    lines += text.table(rows)
    if any(result.results.left_out_as_failed for result in results):
        lines.append(text.LEFT_OUT_NOTE)
    return lines + text.explain_marks(name for result in results for name in result.marks)


def _compared(member: FamilyMember | None) -> tuple[str, str, str, str]:
    if member is None:
        return "-", "-", "-", "-"
    comparison = member.comparison
    points = f"{100 * comparison.difference:+.1f} points"
    return (
        points,
        str(len(comparison.gained)),
        str(len(comparison.lost)),
        f"{member.adjusted_p_value:.3g}",
    )


def describe_incomplete(comparison: Comparison, first: Result, second: Result) -> list[str]:
    """Return a warning for each of two compared results that is incomplete."""
    common = f"only the {comparison.problems} problems that were judged in both are compared"
    gaps = (("A", text.describe_gap(first.coverage)), ("B", text.describe_gap(second.coverage)))
    return [f"{name} is incomplete ({gap}), so {common}" for name, gap in gaps if gap]


def describe_differences(differences: Sequence[Difference]) -> str:
    """Return differences as ``problems: 20 / 4; ...``. Digests are shortened."""

    def short(value: object) -> str:
        shown = str(value)
        return shown[:12] if DIGEST.fullmatch(shown) else shown

    return "; ".join(f"{name}: {short(x)} / {short(y)}" for name, x, y in differences)
