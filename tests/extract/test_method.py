"""Methods in place of functions."""

from __future__ import annotations

from assay.extract.rules.joining import with_function

BODY = "        return x\n"


def test_a_method_becomes_a_function() -> None:
    code = f"class Solution:\n    def f(self, x):\n{BODY}"
    assert with_function(code, "f") == f"{code}\n\nf = Solution().f\n"
    static = f"class Solution:\n    @staticmethod\n    def f(x):\n{BODY}"
    assert with_function(static, "f") == f"{static}\n\nf = Solution.f\n"


def test_other_classes_stay_as_they_are() -> None:
    for code in (f"class A:\n    def g(self, x):\n{BODY}", "class A: pass\n", "class A(:\n"):
        assert with_function(code, "f") == code
