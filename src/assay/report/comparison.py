"""Render comparisons as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from assay.report import text
from assay.report.leaderboard.entries import name_runs
from assay.runs import Comparison, ComparisonFamily, Result
from assay.scoring.decisions import Decision
from assay.scoring.noise import TwoNoises
from assay.scoring.permutation import Significance

# Names of methods as people know them; docs/statistics.md explains each.
METHODS = {
    "tango": "Tango",
    "newcombe-10": "Newcombe",
    "newcombe-unpaired": "Newcombe, unpaired",
    "t-clustered-score": "Student's t",
    "mcnemar-exact": "exact McNemar test",
    "sign-flip-exact": "exact sign-flip test",
    "welch": "Welch's test",
}
SUSPICIONS = {
    "inverted": "passed by weaker models only",
    "failed-by-strong": "failed by every strong model",
}
MORE_SAMPLES = 4  # times as many: the sampling noise is halved
MOST_SUSPICIOUS = 10  # problems in text; the JSON has all


def summarize_comparison(outcome: Comparison, first: Result, second: Result) -> list[str]:
    """Return the lines for a comparison of two results."""
    results = (first, second)
    over, ends = f"over {outcome.problems} problems", outcome.interval
    if not outcome.is_paired:
        judged = [sum(problem.n > 0 for problem in one.problems) for one in results]
        over = f"over {judged[0]} and {judged[1]} different problems"
    decision = describe_decision(outcome.decision, outcome.margin, outcome.is_within_margin)
    mid_p = "" if outcome.mid_p is None else f", mid-p {outcome.mid_p:.3g}"
    lines = [
        *(
            f"{letter}  {_score(result, name)}"
            for letter, result, name in zip("AB", results, name_runs(results), strict=True)
        ),
        f"B - A  {100 * outcome.difference:+.1f} points {text.signed_interval(ends)} "
        f"({100 * ends.level:.4g} %, {METHODS[ends.method]}) {over}, "
        f"{_p_value(outcome.test)}{mid_p}",
        f"decision  {decision}",
    ]
    if outcome.clusters < outcome.problems:
        lines.append(
            f"clusters  {outcome.clusters} originals of these problems; "
            f"{outcome.design_effect:.1f} times the variance of independent problems"
        )
    if outcome.is_paired:
        lines += [
            _flips("gained", outcome.gained, outcome.problems),
            _flips("lost", outcome.lost, outcome.problems),
        ]
    lines += _noise(outcome.noise, max(outcome.samples)) if outcome.noise else []
    return [*lines, _could_show(outcome), *text.explain_marks((*first.marks, *second.marks))]


def describe_decision(decision: Decision, margin: float, is_within_margin: bool) -> str:
    """Return a decision in words."""
    limit = f"{100 * margin:g} points"
    if decision == "equivalent":
        return f"equivalent: the difference is less than {limit}"
    if decision == "undecided":
        return f"undecided: the difference can be 0, and it can be {limit} or more"
    return f"B is {decision}{f', by less than {limit}' if is_within_margin else ''}"


def _score(result: Result, model: str) -> str:
    one = result.pass_at.get(1)
    shown = (
        f"{text.percent_of(one)} {text.interval(one)}{text.describe_left_out(result.results, 1)}"
    )
    name = f"{model} on {text.benchmark_name(result)} ({result.run})"
    return f"pass@1 {shown}  {name} {text.label_marks(result.marks)}".rstrip()


def _p_value(test: Significance) -> str:
    if test.error is None:
        return f"p = {test.p_value:.3g} ({METHODS[test.method]})"
    low, high = test.error
    return f"p = {test.p_value:.3g} ({low:.3g} to {high:.3g}, random sign-flip test)"


def _flips(name: str, tasks: Sequence[str], problems: int) -> str:
    share = f"{100 * len(tasks) / problems:.1f} %"
    return f"{name:<6} {len(tasks)} ({share}): {', '.join(tasks) or '-'}"


def _noise(noise: TwoNoises, samples: int) -> list[str]:
    """Return both standard errors, and what more samples per problem would buy."""
    more = 100 * noise.with_samples(MORE_SAMPLES)
    factor = noise.factor_to_halve()
    needed = "no number of" if factor is None else f"about {samples * factor:.0f}"
    return [
        f"noise  standard error {100 * noise.total:.2f} points: {100 * noise.problems:.2f} from "
        f"problems, {100 * noise.sampling:.2f} from samples",
        f"       {samples * MORE_SAMPLES} samples per problem instead of {samples}: {more:.2f} "
        f"points; {needed} samples would halve it",
    ]


def _could_show(comparison: Comparison) -> str:
    smallest = comparison.detectable.difference
    if smallest is None:
        return f"could show  no difference: {comparison.problems} problems are too few"
    power = f"{100 * comparison.detectable.power:g} % power"
    return f"could show  a difference of {100 * smallest:.1f} points or more, with {power}"


def summarize_family(family: ComparisonFamily, results: Sequence[Result]) -> list[str]:
    """Return a table of several results compared with a baseline, which is the first."""
    letters, names = family.groups.letters, name_runs(results)
    ends = [(letters[one.run], one.run, text.label_marks(one.marks)) for one in results]
    scores = [text.percent_of(one.pass_at.get(1)) for one in results]
    rows: list[tuple[str, ...]] = [
        (
            "", "pass@1", "to the baseline", "gained", "lost", "p", "Holm", "decision", "group",
            "run", "marks",
        ),
        (names[0], scores[0], "baseline", *[""] * 5, *ends[0]),
    ]  # fmt: skip
    for member, name, score, end in zip(
        family.members, names[1:], scores[1:], ends[1:], strict=True
    ):
        one = member.comparison
        rows.append(
            (
                name, score, f"{100 * one.difference:+.1f} {text.signed_interval(one.interval)}",
                str(len(one.gained)), str(len(one.lost)), f"{one.p_value:.3g}",
                f"{member.adjusted_p_value:.3g}", member.decision, *end,
            )
        )  # fmt: skip
    margin = family.members[0].comparison.margin
    level = family.members[0].comparison.interval.level
    return [
        *text.table(rows),
        f"Intervals have the level {100 * level:.4g} %, so that all cover together with "
        f"{100 * (1 - family.alpha):g} %. Equivalent: less than {100 * margin:g} points.",
        "Models that share a letter cannot be distinguished (all pairs, Holm's correction).",
        *_suspicious(family),
        *text.explain_marks(name for result in results for name in result.marks),
    ]


def _suspicious(family: ComparisonFamily) -> list[str]:
    lines = []
    for kind, words in SUSPICIONS.items():
        tasks = [one.task_id for one in family.suspicious_problems if one.suspicion == kind]
        if tasks:
            more = f" and {len(tasks) - MOST_SUSPICIOUS} more" * (len(tasks) > MOST_SUSPICIOUS)
            lines.append(f"{words}: {', '.join(tasks[:MOST_SUSPICIOUS])}{more}")
    return lines
