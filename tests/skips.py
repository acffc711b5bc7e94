"""``--require``: fail on every skip that this machine could have run.

A test may be skipped only where ``LACKS`` has its reason and the machine does lack that thing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.sandbox.environments.interpreters import DEFAULT, choose
from tests.browser.chromium import find_browser

# Beside the checkout, or wherever the user says; read before the settings are cleared.
SHARED_DATA = Path(
    os.environ.get("ASSAY_DATA_DIR") or Path(__file__).parents[2] / "shared" / "data"
)
SYSTEM_PYTHON = Path("/usr/bin/python3")
REFUSED_SKIPS = 7  # exit code, so that a second run of the failed tests does not hide them


@dataclass(frozen=True, slots=True)
class Lack:
    """A reason to skip, as a pattern, and whether it holds on this machine."""

    reason: str
    holds: Callable[[], bool]


def is_missing(module: str) -> bool:
    """Report whether a package that `make test-all` does not install is not there."""
    return importlib.util.find_spec(module) is None


def has_no_gpu() -> bool:
    return not (Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi"))


def is_not_root() -> bool:
    return os.geteuid() != 0


def has_no_runtime() -> bool:
    """Report whether no container runtime runs, none can be started and none be installed."""
    if is_not_root():
        return True
    return not (shutil.which("dockerd") or shutil.which("apt-get"))


def has_no_browser() -> bool:
    """Report whether no browser is installed and none can be."""
    return find_browser() is None and (is_not_root() or not shutil.which("apt-get"))


def has_no_shared_data() -> bool:
    return not SHARED_DATA.is_dir()


def has_no_cgroups() -> bool:
    return is_not_root() or not any(
        os.access(folder, os.W_OK) for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory")
    )


def has_old_system_python() -> bool:
    if not SYSTEM_PYTHON.exists():
        return True
    asked = [str(SYSTEM_PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    return subprocess.run(asked, capture_output=True).returncode != 0


def is_true_by_itself() -> bool:
    """Accept a reason that the test has established itself by looking."""
    return True


LACKS = (
    Lack("needs a GPU", has_no_gpu),
    Lack("there is a GPU here", lambda: not has_no_gpu()),
    Lack("needs vllm", lambda: is_missing("vllm")),
    Lack("needs the trl extra", lambda: is_missing("trl")),
    Lack("needs the parquet extra", lambda: is_missing("pyarrow")),
    Lack("needs the ray extra", lambda: is_missing("ray")),
    Lack("root|as another user|the other tests show it", is_not_root),
    Lack("make container-engine", has_no_runtime),
    Lack("make browser", has_no_browser),
    Lack("the runtime here is somebody else's", is_true_by_itself),
    Lack(r"shared/data|needs BigCodeBench's data|the data of .+ is not here", has_no_shared_data),
    Lack(" has no (?!folder of packages)", is_true_by_itself),  # a file of the shared data
    Lack("Python 3.11|'bigcodebench' is missing", lambda: choose().minor != DEFAULT),
    Lack("needs Python", is_true_by_itself),  # of other versions than the one that runs the tests
    Lack("cgroup version 1", lambda: not Path("/sys/fs/cgroup/memory").exists()),
    Lack("no (cgroup|control group) can be made", has_no_cgroups),
    Lack("/usr/bin/python3|the system's Python is older", has_old_system_python),
    Lack("needs a mount of its own", is_not_root),
    Lack("without GNU OpenMP", is_true_by_itself),  # how the wheel of llama.cpp was built
)


def is_allowed(reason: str) -> bool:
    """Report whether this machine lacks what a test was skipped for."""
    return any(re.search(lack.reason, reason) and lack.holds() for lack in LACKS)


class SkipChecker:
    """Collect the skips of a run and fail it if one is not allowed."""

    def __init__(self) -> None:
        self._refused: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._check(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._check(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._refused and session.exitstatus in (0, 1):
            session.exitstatus = REFUSED_SKIPS

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._refused:
            terminalreporter.section("skips that this machine could have run", red=True)
        for reason, tests in sorted(self._refused.items()):
            terminalreporter.write_line(f"{len(tests)} skipped: {reason}")
            terminalreporter.write_line(f"  for example {tests[0]}")

    def _check(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if not is_allowed(reason):
            self._refused.setdefault(reason, []).append(report.nodeid)
