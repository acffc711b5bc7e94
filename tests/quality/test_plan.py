"""The planner: what a benchmark can show, with and without pilot runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay import runs
from assay.errors import UsageError
from assay.quality.comparison_plan import plan
from assay.runs.result import Timing
from assay.scoring.power import MOST_EXACT, sign_test_power
from tests.in_process import run_command
from tests.runs.test_compare import flips, result


def test_humaneval_shows_seven_points_at_ten_percent_flips() -> None:
    found = plan("humaneval", 164, 0.03)
    one = next(row for row in found.single if row.discordance == 0.10)
    assert one.detectable == pytest.approx(0.0704, abs=1e-4)
    assert one.power == pytest.approx(0.16, abs=0.01)
    assert one.problems_needed is not None
    again = plan("larger", one.problems_needed, 0.03)
    assert next(row.power for row in again.single if row.discordance == 0.10) >= 0.8
    assert found.samples_needed is None
    assert found.problems_needed > 164
    assert found.cost is None
    assert "assumed" in found.noises.source


def test_tiny_differences_are_planned_soon() -> None:
    found = plan("any", 164, 1e-6)
    assert [row.problems_needed for row in found.single] == [None] * len(found.single)
    assert found.problems_needed > 1e9
    few, many = (sign_test_power(n, 0.1, 0.005) for n in (MOST_EXACT, MOST_EXACT + 1))
    assert many == pytest.approx(few, abs=0.005)  # exact here, approximated there
    assert sign_test_power(10**18, 0.1, 0.01) == 1.0
    assert sign_test_power(10**6, 1.0, 1.0) == 1.0


def test_two_pilots_measure_what_differs() -> None:
    a = result("a", [i % 11 for i in range(110)], n=10)
    b = result("b", [min(10, i % 11 + 3 * (i % 3 == 0)) for i in range(110)], n=10)
    found = plan("any", 110, 0.05, pilots=[a, b])
    assert len(found.single) == 1
    assert found.noises.source == "measured by both pilots"
    compared = runs.compare(a, b)
    assert compared.noise is not None
    at_ten = next(row for row in found.several if row.samples == 10)
    assert at_ten.standard_error == pytest.approx(compared.noise.total)
    assert found.samples_needed is not None
    assert found.samples_needed > 1


def test_flips_of_two_pilots_with_one_sample() -> None:
    found = plan("any", 164, 0.03, pilots=flips(10, 3, 130, 21))
    assert found.single[0].discordance == pytest.approx(13 / 164)
    assert found.noises.problems + found.noises.sampling == pytest.approx(13 / 164)
    assert "assumed" in found.noises.source


def test_one_pilot_gives_sampling_noise_and_cost() -> None:
    timing = Timing(tokens_generated=110_000, inference_s=2200.0, cost=1.1)
    pilot = replace(result("a", [i % 11 for i in range(110)], n=10), timing=timing)
    pilot = replace(pilot, environment=replace(pilot.environment, engine={"parallel": 16}))
    found = plan("any", 1000, 0.05, pilots=[pilot])
    assert "correlation 0.8" in found.noises.source
    assert found.samples_needed is not None
    assert found.cost is not None
    samples = found.samples_needed * 1000
    assert (found.cost.samples, found.cost.tokens) == (samples, 100 * samples)
    assert found.cost.price == pytest.approx(samples / 1000)
    assert found.cost.minutes == pytest.approx(2 * samples / 16 / 60, abs=0.06)
    recorded = replace(pilot, timing=Timing())
    assert plan("any", 1000, 0.05, pilots=[recorded]).cost is None


@pytest.mark.parametrize(
    ("difference", "power", "count", "message"),
    [
        (0.0, 0.8, 0, "--difference 0: must be"),
        (0.03, 1.0, 0, "--power 1: must be"),
        (0.03, 0.8, 3, "--pilot: is given more than twice"),
    ],
)
def test_settings_that_make_no_plan(
    difference: float, power: float, count: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        plan("any", 100, difference, power, [result("a", [1])] * count)


def test_pilots_without_common_problems() -> None:
    with pytest.raises(UsageError, match="no judged problem in common"):
        plan("any", 100, 0.03, pilots=[result("a", [1]), result("b", [1], first=5)])


def test_the_command(tmp_path: Path) -> None:
    done = run_command("plan", "--benchmark", "mini", "--difference", "30", folder=tmp_path)
    assert done.code == 0, done.err
    assert done.out.startswith("mini: 20 problems; to show 30.0 points with 80 % power")
    asked = ("plan", "--benchmark", "mini", "--json")
    found = json.loads(run_command(*asked, folder=tmp_path).out)
    assert (found["problems"], found["difference"], found["alpha"]) == (20, 0.03, 0.05)
