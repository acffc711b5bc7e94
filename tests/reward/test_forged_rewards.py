"""Cheats earn nothing, in the shapes of all trainers and with all kinds of own tests."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from assay.reward import Reward, TrlReward, VerlReward
from assay.types import Limits
from tests.security.corpus import CORPUS
from tests.security.forgeries import ENTRY_POINT, REFERENCE
from tests.security.forgeries_answers import MAP_TESTS
from tests.security.forgeries_scripts import ADD, EXAMPLES, HIDDEN, SCRIPT_FORGERIES

NUMBERS = ([1, 2, 3], [5, -5, 7, 0], [10, 20, 30, 40], [9, 1, 1], [2, 4, 8])
TOTALS = ([1, 3, 6], [5, 0, 7, 7], [10, 30, 60, 100], [9, 10, 11], [2, 6, 14])
PAIRS = list(zip(NUMBERS, TOTALS, strict=True))
CASES = {
    "entry_point": ENTRY_POINT,
    "cases": [{"arguments": [given], "expected": total} for given, total in PAIRS],
}
CODE = {"code": "\n".join(f"assert {ENTRY_POINT}({given}) == {total}" for given, total in PAIRS)}
ASSERT_CASE = {"assert_case": CODE["code"].split("\n")}
STDIN = {"stdin_cases": [{"input": i, "output": o} for i, o in (*EXAMPLES, *HIDDEN)]}
MAPPED = {"code": MAP_TESTS, "entry_point": ENTRY_POINT}
INFINITE = {
    "entry_point": ENTRY_POINT,
    "tolerance": 1e-6,
    "cases": [{"arguments": [[n, 1.0]], "expected": [n, n]} for n in (math.inf, -math.inf)],
}
OWN_TESTS = {"cases": CASES, "code": CODE, "assert_case": ASSERT_CASE, "mapped": MAPPED,
             "infinite": INFINITE}  # fmt: skip
LIMITS = Limits(cpu_s=2, call_cpu_s=1, wall_s=3)

EQUAL = """\
class Anything:
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    def __len__(self):
        return 3
    def __iter__(self):
        return iter([self] * 3)


def running_total(numbers):
    return Anything()
"""
CHEATS = {
    "sys.exit(0)": "import sys\nsys.exit(0)\n",
    "sys.exit(0) in the function": "import sys\ndef running_total(numbers):\n    sys.exit(0)\n",
    "os._exit(0)": "import os\nos._exit(0)\n",
    "os._exit(0) in the function": "import os\ndef running_total(numbers):\n    os._exit(0)\n",
    "prints passed": "print('passed')\nprint('pass')\n",
    "prints JSON": 'print(\'{"status": "pass", "reason": "passed"}\')\n',
    "equal to everything": EQUAL,
    "a list that is equal to everything": EQUAL.replace("class Anything:", "class Anything(list):"),
    "equal, by type": EQUAL.replace("Anything()", "type('x', (list,), dict(vars(Anything)))()"),
    "stops a loop": "def running_total(numbers):\n    raise StopIteration\n",
    "one number for all": "def running_total(numbers):\n    return [1.0, 1.0]\n",
    "skips asserts": "import builtins\nbuiltins.AssertionError = KeyError\ndef running_total(n): 0",
}


@pytest.fixture(scope="module")
def verl() -> Iterator[VerlReward]:
    reward = VerlReward(partial=True, limits=LIMITS, workers=2)
    yield reward
    reward.close()


@pytest.mark.parametrize("name", OWN_TESTS)
def test_a_cheat_earns_nothing_from_verl(verl: VerlReward, name: str) -> None:
    tests = OWN_TESTS[name]
    texts = [REFERENCE, *CHEATS.values()]
    found = verl.batch(["own"] * len(texts), texts, [json.dumps(tests)] * len(texts))
    earned = dict(zip(["honest", *CHEATS], (one["score"] for one in found), strict=True))
    assert earned == {"honest": 1.0, **dict.fromkeys(CHEATS, 0.0)}
    assert {one["invalid"] for one in found} == {0.0}


def test_a_cheat_earns_nothing_from_trl() -> None:
    reward = TrlReward(limits=LIMITS, workers=2)
    fenced = [f"```python\n{code}```" for code in (REFERENCE, *CHEATS.values())]
    completions = [[{"role": "assistant", "content": text}] for text in fenced]
    tests = [json.dumps(CASES)] * len(fenced)
    assert reward(["?"] * len(fenced), completions, tests=tests) == [1.0, *[0.0] * len(CHEATS)]
    reward.close()


def test_a_script_without_the_right_output_earns_nothing(verl: VerlReward) -> None:
    texts = [ADD, CHEATS["sys.exit(0)"], CHEATS["os._exit(0)"], CHEATS["prints passed"], "pass\n"]
    found = verl.batch(["own"] * len(texts), texts, [json.dumps(STDIN)] * len(texts))
    assert [one["score"] for one in found] == [1.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "every", [pytest.param(6, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.whole)]
)
@pytest.mark.parametrize("tests", [CASES, CODE], ids=["cases", "code"])
def test_the_forging_corpus_earns_nothing(tests: dict[str, object], every: int) -> None:
    part = CORPUS[::every]
    reward = Reward(limits=LIMITS, workers=2)
    scores = reward.score([tests] * len(part), [forgery.code for forgery in part])
    reward.close()
    earned = {f.name: s.verdict for f, s in zip(part, scores, strict=True) if s.value != 0.0}
    assert earned == {}


@pytest.mark.slow
def test_forged_scripts_earn_nothing() -> None:
    reward = Reward(limits=LIMITS, workers=2)
    texts = [forgery.code for forgery in SCRIPT_FORGERIES]
    scores = reward.score([STDIN] * len(texts), texts)
    reward.close()
    names = [forgery.name for forgery in SCRIPT_FORGERIES]
    earned = {n: s.verdict for n, s in zip(names, scores, strict=True) if s.value != 0.0}
    assert earned == {}
