"""Turn the examples in a prompt into tests for a sandbox, and read their results."""

from __future__ import annotations

import doctest
import re
from typing import TYPE_CHECKING, Any

from assay.data import codec, plain
from assay.selection import Conduct, Probe, ProbeResults
from assay.selection._reading import PromptExample, examples_in, find_prose
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

# Doctests run in the program's interpreter, for prompts whose examples are not plain data.
# Addresses differ between runs. The message of the final failure carries all results.
RUNNER = """
def _run_examples():
    import doctest, hashlib, re

    class Runner(doctest.DocTestRunner):
        right, failed, outputs = 0, False, []

        def report_success(self, out, test, example, got):
            self.right += 1
            self.outputs.append(got)

        def report_failure(self, out, test, example, got):
            self.outputs.append(got)

        def report_unexpected_exception(self, out, test, example, error):
            self.failed = True
            self.outputs.append(error[0].__name__)

    runner = Runner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    examples = [doctest.Example(*example) for example in EXAMPLES]
    test = doctest.DocTest(examples, globals(), "examples", None, 0, None)
    runner.run(test, out=lambda text: None, clear_globs=False)
    outputs = re.sub("0x[0-9a-f]+", "0x", repr(runner.outputs))
    told = "FAILS" if runner.failed else "ANSWERS"
    digest = hashlib.sha256(outputs.encode("utf-8", "backslashreplace")).hexdigest()
    raise AssertionError(f"{runner.right} right, {told} {digest}")


_run_examples()
"""
REPORT = re.compile(r"AssertionError: (\d+) right, (ANSWERS|FAILS) ([0-9a-f]{64})")


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
    if tests.integrity == "shared" and (found := _probe_doctests(problem)):
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


def _probe_doctests(problem: Problem) -> Probe | None:
    found = [
        (example.source, example.want, example.exc_msg)
        for example in _examples(find_prose(problem.prompt, problem.tests.entry_point)[0])
        if not example.options.get(doctest.SKIP)
    ]
    if not any(problem.tests.entry_point in source for source, _, _ in found):
        return None
    code = RUNNER.replace("EXAMPLES", repr(found))
    return Probe(Tests(problem.tests.entry_point, code, problem.tests.preamble), _read_doctests)


def _examples(text: str) -> list[doctest.Example]:
    try:
        return doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []


def _read_doctests(verdict: Verdict, _outputs: Cases | None) -> ProbeResults:
    if match := REPORT.match(verdict.detail):
        return ProbeResults(int(match[1]), Conduct[match[2]], match[3])
    return ProbeResults(behaviour=verdict.reason)
