"""Define what a check of a benchmark finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]

# An error makes scores wrong. A warning is to be looked at.
KINDS: dict[str, tuple[Severity, str]] = {
    "reference-fails": ("error", "the reference does not pass the tests"),
    "flaky": ("error", "the reference passes only sometimes"),
    "passes-empty": ("error", "an empty program passes"),
    "passes-none": ("error", "a function that only returns None passes"),
    "not-judged": ("error", "the sandbox could not judge a program"),
    "duplicate": ("error", "another problem has the same prompt and the same tests"),
    "reference-in-prompt": ("error", "the prompt contains the body of the reference"),
    "same-prompt": ("warning", "another problem has the same prompt and other tests"),
    "cases-in-prompt": ("warning", "the prompt shows every case of the tests with its result"),
    "unnamed-entry-point": ("warning", "the prompt does not name the function to write"),
}


@dataclass(frozen=True, slots=True)
class BenchmarkFinding:
    """Something that is wrong with a problem, or looks wrong."""

    kind: str
    task_id: str
    detail: str = ""

    @property
    def severity(self) -> Severity:
        return KINDS[self.kind][0]


@dataclass(frozen=True, slots=True)
class BenchmarkCheck:
    """The outcome of a check. References were judged ``repeat`` times."""

    benchmark: str
    version: str
    data_sha256: str
    problems: int
    references: int  # problems that have one
    references_passed: int  # every time
    shared: int  # problems whose tests share an interpreter with the program
    repeat: int
    findings: tuple[BenchmarkFinding, ...]

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors
