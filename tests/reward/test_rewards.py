"""From verdicts to rewards: what passes, what counts in part, what is never a zero."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.errors import SandboxError, UsageError
from assay.reward import Reward, TrlReward, VerlReward
from assay.reward.judging import Score, reward_of
from assay.reward.rewards import require_values
from assay.types import Verdict

RIGHT = "```python\ndef celsius_to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32\n```"
ONE_OF_THREE = "```python\ndef celsius_to_fahrenheit(celsius):\n    return 32\n```"
ADD = {"entry_point": "add", "cases": [{"arguments": [n, 1], "expected": n + 1} for n in range(4)]}
ADD_STDIN = {"stdin_cases": [{"input": f"{n} 2\n", "output": f"{n + 2}\n"} for n in range(4)]}
ADD_CODE = {"code": "x = 2\nassert add(x, 2) == 4\nassert add(0, 1) == 1\nassert add(3, 3) == 6"}
MULTIPLY = "def add(a, b):\n    return a * b\n"


@pytest.fixture(scope="module")
def reward() -> Iterator[Reward]:
    opened = Reward(benchmark="mini", workers=2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def dense() -> Iterator[Reward]:
    opened = Reward(benchmark="mini", partial=True, format_share=0.1, workers=2)
    yield opened
    opened.close()


def values(reward: Reward, tests: object, texts: Sequence[str]) -> list[float | None]:
    return [score.value for score in reward.score([tests] * len(texts), texts)]


def test_only_a_program_that_passes_earns_a_reward(reward: Reward) -> None:
    assert values(reward, "mini/0", [RIGHT, ONE_OF_THREE, "I do not know.", ""]) == [1, 0, 0, 0]


def test_partial_credit_counts_assertions(dense: Reward) -> None:
    found = dense.score(["mini/0"] * 3, [RIGHT, ONE_OF_THREE, "def celsius_to_fahrenheit("])
    assert [(score.passed, score.total) for score in found[:2]] == [(1, 1), (1, 3)]
    assert [score.value for score in found] == [1.0, pytest.approx(0.1 + 0.9 / 3), 0.0]


@pytest.mark.parametrize(
    ("tests", "program", "share"),
    [
        (ADD, MULTIPLY, 0.0),
        (ADD, "def add(a, b):\n    return 1 if a == 0 else a * b\n", 0.25),
        (ADD_STDIN, "a, b = map(int, input().split())\nprint(a * b)\n", 0.25),
        (ADD_CODE, MULTIPLY, 1 / 3),
        (ADD_CODE, "def add(a, b):\n    while a: pass\n", 0.0),
    ],
)
def test_partial_credit_with_own_tests(tests: object, program: str, share: float) -> None:
    limits = assay.Limits(cpu_s=1, wall_s=5)
    with_own = Reward(partial=True, workers=2, limits=limits)
    (found,) = with_own.score([tests], [program])
    with_own.close()
    assert found.value == pytest.approx(share)
    assert found.verdict.integrity == "separated"


def test_a_batch_may_mix_benchmarks_and_own_tests(reward: Reward) -> None:
    add = "def add(a, b):\n    return a + b\n"
    read = "print(sum(map(int, input().split())))\n"
    tests = ["mini/0", ADD, ADD_STDIN, ADD_CODE, {"benchmark": "mini", "task_id": "mini/0"}]
    found = reward.score(tests, [RIGHT, add, read, add, ONE_OF_THREE])
    assert [score.value for score in found] == [1, 1, 1, 1, 0]


def test_the_same_completions_get_the_same_rewards(dense: Reward) -> None:
    texts = [RIGHT, ONE_OF_THREE, MULTIPLY] * 3
    assert values(dense, "mini/0", texts) == values(dense, "mini/0", texts)


def test_an_unknown_task_is_an_error_and_not_a_zero(reward: Reward) -> None:
    with pytest.raises(UsageError, match="mini/99: is not a task of mini"):
        reward.score(["mini/99"], [RIGHT])


def test_tests_that_a_program_could_forge_are_refused(reward: Reward) -> None:
    shared = {"code": "assert add(lambda: 1, 2) == 3"}
    with pytest.raises(UsageError, match="a pass can be forged"):
        reward.score([shared], ["def add(a, b):\n    return 3\n"])
    trusting = Reward(allow_shared=True, workers=1)
    assert values(trusting, shared, ["def add(a, b):\n    return 3\n"]) == [1.0]
    trusting.close()


class Judge:
    """Judge by the program's text, and fail as often as told."""

    def __init__(self, status: str = "pass", failures: int = 0) -> None:
        self.status, self.failures = status, failures
        self.batches: list[list[tuple[str, str]]] = []
        self.unscorable = {"mini/2": "the reference fails"}

    def judge(self, programs: object) -> list[Verdict]:
        assert isinstance(programs, list)
        self.batches.append(programs)
        self.failures -= 1
        status = "invalid" if self.failures >= 0 else self.status
        return [Verdict(t, n, status, "x", "why") for n, (t, _) in enumerate(programs)]  # type: ignore[arg-type]


def test_a_failure_of_the_machine_is_none_and_never_zero() -> None:
    with closing(TrlReward(benchmark="mini", judge=Judge(failures=2))) as reward:
        assert reward(["p"], [RIGHT], task_id=["mini/0"]) == [None]
        assert reward(["p"], [RIGHT], task_id=["mini/0"]) == [1.0]


def test_a_failure_of_the_machine_is_tried_again() -> None:
    judge = Judge(failures=1)
    with closing(Reward(benchmark="mini", judge=judge)) as reward:
        assert values(reward, "mini/0", [RIGHT]) == [1.0]
    assert len(judge.batches) == 2


def test_where_a_number_is_needed_a_failure_of_the_machine_is_an_error() -> None:
    def failing() -> Judge:
        return Judge(failures=9)

    said = pytest.raises(SandboxError, match="mini/0: no reward, because the machine could not")
    with closing(VerlReward(judge=failing)) as strict, said:
        strict("mini", RIGHT, "mini/0")
    with closing(VerlReward(judge=failing, invalid=0.5)) as lenient:
        found = lenient("mini", RIGHT, "mini/0")
    assert found == {"score": 0.5, "acc": 0.0, "invalid": 1.0}


def test_a_task_whose_reference_fails_here_gives_no_reward() -> None:
    text = "def second_largest(numbers):\n    return 1\n"
    with closing(Reward(benchmark="mini", judge=Judge())) as reward:
        assert values(reward, "mini/2", [text]) == [None]


def test_a_batch_is_one_call_and_equal_programs_are_judged_once() -> None:
    judge = Judge("fail")
    with closing(Reward(benchmark="mini", judge=judge)) as reward:
        assert values(reward, "mini/0", [RIGHT] * 5) == [0.0] * 5
    assert [len(batch) for batch in judge.batches] == [1]


def test_another_judge_has_no_own_tests() -> None:
    said = pytest.raises(UsageError, match="this judge has only the tests of a benchmark")
    with closing(Reward(judge=Judge())) as reward, said:
        reward.score([ADD], [MULTIPLY])


def test_a_judge_of_assay_can_be_used() -> None:
    with assay.Judge("mini", workers=1) as judge:
        with closing(Reward(benchmark="mini", judge=judge)) as reward:
            assert values(reward, "mini/0", [RIGHT, ""]) == [1.0, 0.0]
        assert judge.judge({"mini/0": ""})[0].status == "fail"  # still open


def test_a_function_that_opens_a_judge_can_be_pickled() -> None:
    opening = Reward(benchmark="mini", judge=partial(assay.Judge, "mini", workers=1))
    with closing(pickle.loads(pickle.dumps(opening))) as reward:
        assert values(reward, "mini/0", [RIGHT]) == [1.0]


def test_threads_share_one_sandbox(reward: Reward) -> None:
    texts = [RIGHT if n % 3 else ONE_OF_THREE for n in range(40)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: values(reward, "mini/0", [text])[0], texts))
    assert found == [float(bool(n % 3)) for n in range(40)]


def test_a_pickled_reward_and_a_forked_process_judge_for_themselves(reward: Reward) -> None:
    assert values(reward, "mini/0", [RIGHT]) == [1.0]
    again = pickle.loads(pickle.dumps(reward))
    assert again == reward
    assert values(again, "mini/0", [ONE_OF_THREE]) == [0.0]
    again.close()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, repr(values(reward, "mini/0", [RIGHT, ONE_OF_THREE])).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 100) == b"[1.0, 0.0]"
    os.close(reader)
    os.close(writer)
    assert values(reward, "mini/0", [RIGHT, ONE_OF_THREE]) == [1.0, 0.0]


LEAVES = """
import subprocess
from assay.reward import Reward

found = Reward(benchmark="mini", workers=1).score(["mini/0"], ["def f(): pass"])
print(subprocess.run(["ps", "-o", "pid=", "--ppid", str(__import__("os").getpid())],
                     capture_output=True, text=True).stdout)
"""


def test_nothing_is_left_after_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES], capture_output=True, text=True, check=True, timeout=120
    )
    children = [int(pid) for pid in done.stdout.split()]
    assert children
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)


STATUSES = st.sampled_from(["pass", "fail", "invalid"])
REASONS = st.sampled_from(["passed", "wrong-answer", "no-code", "syntax", "timeout"])


@given(STATUSES, REASONS, st.integers(0, 9), st.integers(1, 9), st.booleans(), st.floats(0, 0.9))
def test_rewards_follow_the_verdict(
    status: str, reason: str, passed: int, total: int, partial: bool, format_share: float
) -> None:
    verdict = Verdict("t", 0, status, reason)  # type: ignore[arg-type]
    value = reward_of(
        verdict, min(passed, total), total, partial=partial, format_share=format_share
    )
    if status == "invalid":
        assert value is None
    elif status == "pass":
        assert value == 1.0
    else:
        assert value is not None
        assert 0 <= value < 1
        if not partial or not passed or passed >= total:
            assert value in (0.0, format_share)


def test_every_number_is_asked_for() -> None:
    scores = [Score(None, Verdict("t", 0, "invalid", "sandbox-error"), 0, 1)]
    assert require_values(scores, 0.0) == [0.0]
    with pytest.raises(SandboxError):
        require_values(scores, float("nan"))
    with pytest.raises(UsageError, match="format_share"):
        Reward(format_share=1.0)
