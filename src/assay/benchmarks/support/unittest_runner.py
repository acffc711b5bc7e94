"""Run a unittest class named ``TestCases`` at the end of a benchmark's test code."""

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
