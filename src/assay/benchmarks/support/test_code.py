"""Analyse a benchmark's test code. Own tests are analysed in the same way (``assay.test_code``)."""

from assay.test_code import called_functions, code_tests, function_under_test, integrity_of

__all__ = ["called_functions", "code_tests", "function_under_test", "integrity_of"]
