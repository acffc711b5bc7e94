"""Write the outcome of a check of a benchmark as text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from assay.data import codec
from assay.data.printable import quantity
from assay.pipeline.benchmark_check import KINDS, BenchmarkCheck, BenchmarkFinding
from assay.report.text import table

MOST_ROWS = 20  # of one kind
LONGEST = 160  # characters of a line


def summarize_check(found: BenchmarkCheck) -> list[str]:
    """Return the lines of a table of findings, and of a summary."""
    counts = Counter(one.kind for one in found.findings)
    rows: list[tuple[str, ...]] = []
    for kind, count in counts.items():
        listed = [one for one in found.findings if one.kind == kind]
        rows += [(one.severity, kind, one.task_id, _describe(one)) for one in listed[:MOST_ROWS]]
        if count > MOST_ROWS:
            more = f"{count - MOST_ROWS} more, which --json lists"
            rows.append((listed[0].severity, kind, "…", more))
    lines = table([("", "finding", "task", "detail"), *rows]) if rows else []
    times = f"{found.repeat} times" if found.repeat > 1 else "once"
    return [
        *lines,
        f"{found.benchmark} {found.version}: {quantity(found.problems, 'problem')}",
        f"  references  {found.references_passed} of {found.references} pass, judged {times}",
        f"  tests       {found.problems - found.shared} in a separate process, {found.shared} in "
        "the program's interpreter",
        f"  findings    {quantity(found.errors, 'error')}, {quantity(found.warnings, 'warning')}",
    ]


def _describe(finding: BenchmarkFinding) -> str:
    """Return what the kind of finding means, and the detail."""
    meaning = KINDS[finding.kind][1]
    line = " ".join(f"{meaning}: {finding.detail}".split()) if finding.detail else meaning
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def render_check(found: BenchmarkCheck) -> dict[str, Any]:
    """Return a check as JSON-ready data, with the severity of each finding."""
    findings = [{"severity": one.severity, **codec.to_json(one)} for one in found.findings]
    counts = {"errors": found.errors, "warnings": found.warnings}
    return {**codec.to_json(found), **counts, "findings": findings}
