"""Turn the examples in a prompt into tests for a sandbox, and read their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.data import codec, plain
from assay.selection import Conduct, Probe, ProbeResults, _doctests
from assay.selection._reading import PromptExample, examples_in
from assay.types import Cases, Tests

if TYPE_CHECKING:
    from assay.types import Problem, Verdict

GROUP = "examples"
UNORDERED = {"set", "frozenset", "dict", "keys", "items"}
# Prompts show rounded numbers.
SAME = """
def same(got, expected):
    if isinstance(expected, (list, tuple)) and type(got) is type(expected):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, float) or isinstance(got, float):
        if got == expected or abs(expected) == float("inf"):
            return got == expected
        return abs(got - expected) <= 1e-6 * max(1.0, abs(expected))
    return got == expected
"""
MATCHER = """
def matcher():
    return lambda arguments, number, got: CHECKS[number](got)
"""


def probe(problem: Problem, *, checked: bool) -> Probe | None:
    """Return the prompt's examples as tests, or None if none can be executed.

    They run in a separate process, with plain data in between. If ``checked``, the results that
    match the prompt are counted; otherwise all results are returned. If the benchmark's own tests
    need the program's interpreter, doctests run there, which do both. Examples in words, of contest
    problems, are not read.
    """
    tests = problem.tests
    if tests.is_script or tests.adapter:
        return None
    if tests.integrity == "shared" and (found := _doctests.probe(problem)):
        return found
    examples = examples_in(problem.prompt, tests.entry_point)
    if not examples:
        return None
    inputs = {GROUP: [plain.encode(list(example.arguments)) for example in examples]}
    expected = {GROUP: list(range(len(examples)))} if checked else {}
    code = _code(examples)
    cases = Cases(inputs, expected, codec.digest([inputs, expected]))
    return Probe(Tests(tests.entry_point, code, tests.preamble, "separated", cases), read)


def _code(examples: list[PromptExample]) -> str:
    checks = "".join(f"    lambda got: {example.check},\n" for example in examples)
    return f"{SAME}\n\nCHECKS = [\n{checks}]\n\n{MATCHER}"


def read(verdict: Verdict, outputs: Cases | None) -> ProbeResults:
    """Read a verdict. ``outputs`` are the returned values, unless it was checked or failed."""
    if outputs is None:
        right = verdict.groups.get(GROUP, (0,))[0]
        return ProbeResults(right, Conduct.FAILS, f"{verdict.reason} {verdict.failing_test}")
    data = outputs.expected[GROUP]
    if plain.has_opaque(data):
        return ProbeResults(0, Conduct.OPAQUE, str(verdict.sample))  # equal to no other
    return ProbeResults(0, Conduct.ANSWERS, codec.digest(canonical(data)))


def canonical(data: Any) -> Any:
    """Return encoded data, equal for values that differ only in their floats' last digits."""
    if isinstance(data, list):
        return [canonical(item) for item in data]
    if isinstance(data, dict):
        ((tag, content),) = data.items()
        content = canonical(content)
        return {tag: sorted(content, key=codec.dumps) if tag in UNORDERED else content}
    if isinstance(data, float):
        data = float(f"{data:.9g}")
        return int(data) if data.is_integer() else data
    return int(data) if isinstance(data, bool) else data
