"""``assay sandbox``."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Cli


def test_doctor_names_every_tier_and_the_one_used(assay: Cli) -> None:
    done = assay("sandbox", "doctor")
    assert done.returncode == 0
    assert done.stdout.count("\ntier ") == 3
    assert done.stdout.count("<- used") == 1
    found = json.loads(assay("sandbox", "doctor", "--json").stdout)
    assert found["chosen"] in ("root", "user", "landlock")
    refused = [tier for tier in found["tiers"] if tier["refusal"]]
    assert all(tier["remedy"] for tier in refused)


@pytest.mark.slow
def test_selftest_prints_a_table_and_keeps_its_promises(assay: Cli) -> None:
    done = assay("sandbox", "selftest")
    assert done.returncode == 0, done.stdout
    assert "fork bomb" in done.stdout
    assert "0 guarantees broken" in done.stdout.splitlines()[-1]


def test_an_unknown_tier_is_refused(assay: Cli) -> None:
    done = assay("sandbox", "selftest", "--sandbox-tier", "steel")
    assert done.returncode == 2
    assert "sandbox tier 'steel': unknown" in done.stderr
    done = assay("eval", "mini", "--sandbox-tier", "steel", "--model", "replay:/dev/null")
    assert done.returncode == 2
