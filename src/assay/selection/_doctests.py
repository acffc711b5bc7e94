"""Run doctests in the program's interpreter, for prompts whose examples are not plain data."""

from __future__ import annotations

import doctest
import re
from typing import TYPE_CHECKING

from assay.selection import Conduct, Probe, ProbeResults
from assay.selection._reading import find_prose
from assay.types import Tests

if TYPE_CHECKING:
    from assay.types import Cases, Problem, Verdict

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
TOLD = re.compile(r"AssertionError: (\d+) right, (ANSWERS|FAILS) ([0-9a-f]{64})")


def probe(problem: Problem) -> Probe | None:
    found = [
        (example.source, example.want, example.exc_msg)
        for example in _examples(find_prose(problem.prompt, problem.tests.entry_point)[0])
        if not example.options.get(doctest.SKIP)
    ]
    if not any(problem.tests.entry_point in source for source, _, _ in found):
        return None
    code = RUNNER.replace("EXAMPLES", repr(found))
    return Probe(Tests(problem.tests.entry_point, code, problem.tests.preamble), read)


def _examples(text: str) -> list[doctest.Example]:
    try:
        return doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []


def read(verdict: Verdict, _outputs: Cases | None) -> ProbeResults:
    if told := TOLD.match(verdict.detail):
        return ProbeResults(int(told[1]), Conduct[told[2]], told[3])
    return ProbeResults(behaviour=verdict.reason)
