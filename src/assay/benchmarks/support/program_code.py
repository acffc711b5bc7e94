"""Code around programs: that of prompts, adapters for methods, a runner of unittest classes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence

from assay.types import ADAPTED

# An adapter runs in the program's process, after the program. The entry point is a method of a
# class, as on LeetCode, and one instance answers all calls.
CLASS = "Solution"
NAMED = """\
def {adapted}(*values, _method={owner}().{method}, _names={names!r}, _builders={builders!r}):
    named = dict(zip(_names, values))
    for name, builder in _builders.items():
        named[name] = globals()[builder](named[name])
    return _method(**named)
"""
# Upstream takes a function of the module if the program has no such class.
POSITIONAL = """\
def {adapted}(*values, _method=getattr({owner}() if {owner!r} in globals() else
                                       __import__("sys").modules[__name__], {method!r})):
    return _method(*values)
"""
# Run a unittest class named ``TestCases`` at the end of a benchmark's test code.
# As in upstream: the loader's order. The first failure is raised. An assertion's trace is cut at
# the line of the test, so that the verdict names that line. No benchmark skips a test, so one that
# is skipped was skipped by the program, and has failed; upstream lets it pass. So it is with
# unittest's own exception that ends a test without a failure.
RUNNER = """
def _run_test_cases():
    import contextlib
    import unittest.case

    steering = unittest.SkipTest, unittest.case._ShouldStop
    part_of_test = unittest.case._Outcome.testPartExecutor

    @contextlib.contextmanager
    def unsteered(*args, **kwargs):
        with part_of_test(*args, **kwargs):
            try:
                yield
            except steering as error:
                raise RuntimeError("the program skipped the test") from error

    class FirstFailure(unittest.TestResult):
        error = None

        def addError(self, test, error):
            if self.error is None and error is not None:
                self.error = error[1]
                self.error.add_note("in " + getattr(test, "_testMethodName", test.id()))
                self.stop()

        addFailure = addError

        def addSkip(self, test, reason):
            self.addError(test, (None, RuntimeError("the program skipped the test"), None))

        def addSubTest(self, test, subtest, error):
            self.addError(test, error)

    unittest.case._Outcome.testPartExecutor = unsteered
    result = FirstFailure()
    unittest.TestLoader().loadTestsFromTestCase(TestCases).run(result)
    if result.error is None:
        return
    if isinstance(result.error, AssertionError):
        tests, entry, last = _run_test_cases.__code__.co_filename, result.error.__traceback__, None
        while entry is not None:
            last = entry if entry.tb_frame.f_code.co_filename == tests else last
            entry = entry.tb_next
        if last is not None:
            last.tb_next = None
    raise result.error


_run_test_cases()
"""


def preamble_of(prompt: str, entry_point: str) -> str:
    """Return the prompt's imports and helpers, without the unfinished function itself.

    They precede every program, as they do when a base model continues the prompt: the tests of
    HumanEval/32, 38 and 50 call such helpers, and signatures need the imports.
    """
    lines = prompt.splitlines(keepends=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in a benchmark's code
        module = ast.parse(prompt)
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).strip("\n")


def as_docstring(words: str, code: str = "") -> str:
    """Return an instruction as a docstring, with code that a base model continues after it."""
    quoted = words.strip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""\n{quoted}\n"""\n\n{code}'


def with_named_arguments(
    method: str, names: Sequence[str], builders: Mapping[str, str] | None = None
) -> str:
    """Return an adapter that passes arguments by name.

    ``builders`` are functions of the preamble that turn an argument, by name, into linked nodes.
    """
    return NAMED.format(
        adapted=ADAPTED,
        owner=CLASS,
        method=method,
        names=tuple(names),
        builders=dict(builders or {}),
    )


def with_positional_arguments(method: str) -> str:
    """Return an adapter that passes arguments by position."""
    return POSITIONAL.format(adapted=ADAPTED, owner=CLASS, method=method)
