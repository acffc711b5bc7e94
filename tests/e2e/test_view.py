"""``assay view`` as a user starts and ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

import assay as package
from tests.conftest import ASSAY, Cli
from tests.e2e.test_history import write_result


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_result(tmp_path / "results", "2026-01-01", "qwen")
    return tmp_path / "results"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(results: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*ASSAY, "view", "results", "--port", "0"], cwd=results.parent, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A suite in the background ignores SIGINT; its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"results: (http://127\.0\.0\.1:\d+/)  \(press Ctrl-C to stop\)\n", line)
    assert found, line
    with urllib.request.urlopen(found[1], timeout=30) as response:
        assert b"qwen" in response.read()
    stream = urllib.request.urlopen(f"{found[1]}api/events", timeout=30)  # an open page
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "Stopped.\n")
    stream.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: is not a folder. Give a results folder, or start a run with"),
        (["--host", "0.0.0.0"], "--host 0.0.0.0: others can reach this address. Give --token-file"),
        (["--host", "no such host"], "--host no such host: others can reach this address."),
        (["--token-file", "poor"], "poor: is not a token of at least 16 letters and digits."),
    ],
)
def test_mistakes_are_one_line(
    assay: Cli, results: Path, arguments: list[str], message: str
) -> None:
    (results.parent / "poor").write_text("poor")
    (results.parent / "poor").chmod(0o600)
    done = assay("view", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"assay: {message}")
    assert done.stderr.count("\n") == 1


def test_from_python(results: Path) -> None:
    with package.view(results, height=500) as view:
        shown = view._repr_html_()
        assert f'src="{view.url}"' in shown
        assert 'height="500"' in shown
        with urllib.request.urlopen(view.url, timeout=30) as response:
            policy = response.headers["Content-Security-Policy"]
        assert "frame-ancestors 'self' http://localhost:*" in policy
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset
        urllib.request.urlopen(view.url, timeout=5)
