"""``--require``: which skips a full run accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips
from tests.skips import Lack, is_allowed

ROOT = Path(__file__).parents[1]
SKIPPED = """
import pytest

@pytest.mark.skip(reason={reason!r})
def test_nothing():
    pass

def test_something():
    assert True
"""


def test_an_unknown_reason_is_refused() -> None:
    assert not is_allowed("it was late")


@pytest.mark.parametrize("lacks_it", [True, False])
def test_a_reason_counts_only_where_it_holds(
    monkeypatch: pytest.MonkeyPatch, lacks_it: bool
) -> None:
    monkeypatch.setattr(skips, "LACKS", (Lack("needs a harp", lambda: lacks_it),))
    assert is_allowed("test needs a harp") is lacks_it


@pytest.mark.parametrize(
    ("reason", "code", "flags"),
    [
        ("it was late", skips.REFUSED_SKIPS, ()),
        pytest.param("needs vllm", 0, (), marks=pytest.mark.slow),
        pytest.param("it was late", skips.REFUSED_SKIPS, ("-n", "2"), marks=pytest.mark.slow),
        pytest.param("needs vllm", 0, ("-n", "2"), marks=pytest.mark.slow),
    ],
)
def test_the_option_decides_the_exit_code(
    tmp_path: Path, reason: str, code: int, flags: tuple[str, ...]
) -> None:
    if reason == "needs vllm" and not skips.is_missing("vllm"):
        reason = "without GNU OpenMP"
    (tmp_path / "test_skipped.py").write_text(SKIPPED.format(reason=reason))
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags]
    done = subprocess.run(
        [*command, "--require", "--rootdir", tmp_path, "test_skipped.py"],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert ("skips that this machine could have run" in done.stdout) is bool(code)
    assert "1 passed, 1 skipped" in done.stdout
