"""Arguments of wrong types and lengths: every public function answers in one line."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay
from assay import api, reward
from assay.data.arguments import check_argument, checked, show
from assay.errors import AssayError, UsageError
from assay.types import Limits

API: Any = assay  # for type checkers, these calls are errors too
LIMITS: Any = Limits
RIGHT = "def f(x):\n    return x\n"
OWN = {"entry_point": "f", "cases": [{"arguments": [1], "expected": 1}]}


class Odd:
    """An object that nothing expects, and that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


WRONG: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**30), 10**5000, -1, 4]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["", "\0", "\ud800", "no such thing", "a" * 300, "/", ".."]),
    st.binary(max_size=3),
    st.lists(st.one_of(st.integers(), st.text(max_size=2), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from([Odd(), object, print, Path("/no/such"), Path("a\0b"), {1: 2}, ({},), (1, 2)]),
    st.sampled_from([LIMITS(cpu_s="1"), LIMITS(memory_mb=None)]),
)
# With these, each function ends at once: nothing of that name exists.
BASE: dict[str, dict[str, Any]] = {
    "evaluate": {"benchmark": "mini", "model": "replay:/no/such"},
    "run_suite": {"suite": "/no/such.yaml"},
    "check_benchmark": {"benchmark": "/no/such.yaml"},
    "judge": {"programs": [], "benchmark": "/no/such.yaml"},
    "Judge": {"benchmark": "/no/such.yaml"},
    "RemoteJudge": {"url": "http://127.0.0.1:9/no"},
    "compare": {"a": "/no/such", "b": "/no/such"},
    "compare_family": {"baseline": "/no/such", "others": ["/no/such"]},
    "leaderboard": {"results": "/no/such"},
    "load_benchmark": {"name": "/no/such.yaml"},
    "load_run": {"reference": "/no/such"},
    "open_model": {"reference": "replay:/no/such"},
    "plan": {"benchmark": "/no/such.yaml"},
    "write_report": {"references": "/no/such", "output": "/no/such/report.html"},
}


def parameters() -> Iterator[tuple[str, str]]:
    for name in BASE:
        for parameter in inspect.signature(getattr(api, name)).parameters:
            yield name, parameter


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A service that does not answer is asked again for a while, which is not the matter here.
    monkeypatch.setattr("assay.judging.client.CONNECT_ATTEMPTS", 1)


@pytest.mark.parametrize(("name", "parameter"), list(parameters()))
@given(value=WRONG)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_an_argument_of_another_type_is_an_error_of_one_line(
    name: str, parameter: str, value: Any
) -> None:
    arguments = {**BASE[name], parameter: value}
    try:
        getattr(api, name)(**arguments)
    except AssayError as error:
        assert "\n" not in str(error).strip()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: API.evaluate("mini", problems=4), "problems: 4 is not valid here. Give str."),
        (lambda: API.evaluate("mini", tasks="Mini/0"), "tasks: 'Mini/0' is not valid here."),
        (lambda: API.evaluate("mini", n_samples=True), "n_samples: True is not valid here."),
        (lambda: API.evaluate("mini", temperature="0"), "temperature: '0' is not valid here."),
        (lambda: API.evaluate("mini", temperature=float("nan")), "temperature: nan is not"),
        (lambda: API.evaluate("mini", engine={}), "Give EngineOptions | None."),
        (lambda: API.evaluate("mini", reporter=print), "Give Reporter."),
        (lambda: API.judge([("Mini/0",)], "mini"), "programs: [('Mini/0',)] is not valid here."),
        (lambda: API.judge(iter([("Mini/0", 1)]), "mini"), "programs: [('Mini/0', 1)] is not"),
        (lambda: API.judge({}, "mini", limits=LIMITS(cpu_s="1")), "limits.cpu_s: '1' is not"),
        (lambda: API.judge({}, "mini", limits=Limits(cpu_s=-1)), "limits.cpu_s: -1 is not from"),
        (lambda: API.judge({}, "mini", limits=Limits(cpu_s=0)), "limits.cpu_s: 0 is not from 0.1"),
        (lambda: API.judge({}, "mini", limits=Limits(memory_mb=-5)), "limits.memory_mb: -5 is not"),
        (lambda: reward.Reward(limits=Limits(wall_s=-1)), "limits.wall_s: -1 is not from"),
        (lambda: API.judge({}, "mini", workers=-1), "workers -1: must be 0 (one per core) or more"),
        (lambda: API.load_benchmark("a\nb"), "benchmark 'a b': unknown."),
        (lambda: API.RemoteJudge(f"http://{'d' * 300}"), "is not the address of a judge service"),
        (lambda: API.open_model("a" * 300), "is too long for the name of a file"),
        (lambda: API.leaderboard("a/" * 3000), "is too long for the name of a file"),
        (lambda: API.load_run("a\0b"), "reference: 'a\\x00b' is not valid here."),
        (lambda: API.compare(1, 2), "a: 1 is not valid here. Give Result | str | Path."),
    ],
)
def test_the_error_names_the_argument(call: Callable[[], object], said: str) -> None:
    with pytest.raises(AssayError) as found:
        call()
    assert said in str(found.value)


@dataclass(frozen=True)
class Settings:
    number: int
    words: Sequence[str] = ()
    choice: Literal["a", "b"] = "a"
    table: Mapping[str, float] | None = None


@checked
def example(
    first: int, *rest: int, words: Sequence[str] = (), table: Mapping[str, float] | None = None
) -> int:
    return first + len(rest) + len(words) + len(table or {})


def test_right_arguments_pass_unchanged() -> None:
    assert example(1, 2, words=["a"], table={"a": 1}) == 4
    with contextlib.suppress(TypeError):  # Python's own, of a call that no signature has
        example()  # type: ignore[call-arg]


@given(st.one_of(st.integers(), st.text(), st.floats(), st.none(), st.lists(st.integers())))
def test_only_whole_numbers_are_whole_numbers(value: Any) -> None:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    with contextlib.nullcontext() if fits else pytest.raises(UsageError):
        check_argument("number", value, "int", Settings)


@given(WRONG)
def test_every_value_can_be_shown_in_a_line(value: Any) -> None:
    assert "\n" not in show(value)
    assert len(show(value)) < 60


def test_columns_of_different_lengths_are_refused() -> None:
    trl = reward.TrlReward(benchmark="mini")
    with pytest.raises(UsageError, match="batch: has 2 prompts, 1 completions, 2 tests"):
        trl(["p", "p"], ["c"], tests=[OWN, OWN])
    with pytest.raises(UsageError, match="batch: has 1 prompts, 2 completions, 2 tests"):
        trl(["p"], ["c", "c"], tests=[OWN, OWN])
    with pytest.raises(UsageError, match="batch: has 1 prompts, 1 completions, 2 tests"):
        trl(["p"], ["c"], tests=[OWN, OWN])
    with pytest.raises(UsageError, match="1 completions, 2 task_id"):
        trl(["p"], ["c"], task_id=["a", "b"])
    with pytest.raises(UsageError, match="2 task_id, 1 benchmark"):
        trl(["p", "p"], ["c", "c"], task_id=["a", "b"], benchmark=["mini"])
    verl = reward.VerlReward()
    with pytest.raises(UsageError, match="batch: has 1 data_sources, 2 solution_strs"):
        verl.batch(["mini"], ["a", "b"], ["t", "t"])
    with pytest.raises(UsageError, match="batch: has 1 tests, 2 completions"):
        trl.score(["t"], ["a", "b"])


@given(value=WRONG, place=st.sampled_from(["prompts", "completions", "tests", "task_id", "item"]))
@settings(max_examples=60, deadline=None)
def test_rewards_of_wrong_values_are_errors_of_one_line(value: Any, place: str) -> None:
    batch: dict[str, Any] = {"prompts": ["p"], "completions": [RIGHT], "tests": [{}]}
    batch |= {"completions": [value]} if place == "item" else {place: value}
    with contextlib.closing(reward.TrlReward()) as trl, pytest.raises(AssayError) as found:
        trl(**batch)
    assert "\n" not in str(found.value)


@given(value=WRONG, name=st.sampled_from(["partial", "format_share", "retries", "limits", "form"]))
@settings(max_examples=60, deadline=None)
def test_settings_of_rewards_are_checked(value: Any, name: str) -> None:
    with contextlib.suppress(AssayError):
        reward.TrlReward(**{name: value})
