"""The attack battery in all three tiers, as root, as an ordinary user, and without namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.sandbox import open_sandbox
from assay.sandbox.selftest.attacks import BATTERY
from assay.sandbox.selftest.battery import run_battery
from tests.security.in_tiers import ORDINARY_UID, SYSTEM_PYTHON, readable_source

SELFTEST = """
import dataclasses, json, sys
from assay.sandbox import open_sandbox
from assay.sandbox.selftest.battery import run_battery
sandbox = open_sandbox("process", 1, sys.argv[1])
print(json.dumps({"tier": sandbox.capabilities().tier}))
for observation in run_battery(sandbox):
    print(json.dumps(dataclasses.asdict(observation)))
sandbox.close()
"""
# The way a container forbids namespaces: our own filter for these alone, on the harness itself.
FORBID_NAMESPACES = """
from assay.sandbox.inside.isolation import kernel, seccomp
OF_NAMESPACES = ("unshare", "mount", "umount2", "pivot_root", "move_mount", "mount_setattr")
seccomp.FORBIDDEN = {name: seccomp.FORBIDDEN[name] for name in OF_NAMESPACES}
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(families=(1, 2, 10), watched=False, forks=True)
"""
NOT_PROMISED = {
    "root": {"object that equals everything", "frame walking"},
    "user": {"object that equals everything", "frame walking"},
    "landlock": {
        "object that equals everything",
        "frame walking",
        "disk fill",
        "disk fill by deleted files",
        "inode fill",
        "see a host file (stat)",
    },
}


def judge(observations: list[dict[str, Any]], tier: str) -> None:
    assert len(observations) == len(BATTERY)
    assert [o for o in observations if o["promised"] and not o["contained"]] == []
    assert {o["attack"] for o in observations if not o["promised"]} == NOT_PROMISED[tier]


def test_as_whoever_runs_the_tests() -> None:
    """The one tier of the default tests: the strongest that is given to this user."""
    sandbox = open_sandbox("process", 1)
    tier = sandbox.capabilities().tier
    observations = [
        {"attack": o.attack, "promised": o.promised, "contained": o.contained, "saw": o.observed}
        for o in run_battery(sandbox)
    ]
    sandbox.close()
    if os.geteuid() == 0:
        assert tier == "root"
    judge(observations, tier)


def selftest(
    python: str, tier: str, before: str = "", uid: int | None = None
) -> tuple[str, list[dict[str, Any]]]:
    done = subprocess.run(
        [python, "-c", before + SELFTEST, tier],
        env={"PYTHONPATH": str(readable_source()), "PATH": os.environ["PATH"]},
        cwd="/",
        user=uid,
        group=uid,
        extra_groups=[] if uid else None,
        capture_output=True,
        text=True,
        timeout=600,  # one attack takes 25 CPU seconds
    )
    assert done.returncode == 0, done.stderr
    first, *rest = map(json.loads, done.stdout.splitlines())
    return first["tier"], rest


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not Path(SYSTEM_PYTHON).exists(), reason=f"needs {SYSTEM_PYTHON}")
@pytest.mark.parametrize(("asked", "given"), [("auto", "user"), ("landlock", "landlock")])
def test_as_an_ordinary_user(asked: str, given: str) -> None:
    tier, observations = selftest(SYSTEM_PYTHON, asked, uid=ORDINARY_UID)
    assert tier == given
    judge(observations, given)


@pytest.mark.slow
def test_where_namespaces_are_refused() -> None:
    tier, observations = selftest(sys.executable, "auto", FORBID_NAMESPACES)
    assert tier == "landlock"
    judge(observations, "landlock")


@pytest.mark.parametrize("tier", ["root", "user"])
def test_a_weaker_tier_is_never_taken_for_the_one_asked(tier: str) -> None:
    ask = f"from assay.sandbox import open_sandbox\nopen_sandbox('process', 1, {tier!r})"
    script = f"{FORBID_NAMESPACES}\n{ask}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(readable_source())},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "SandboxError: process sandbox: does not work here" in done.stderr
