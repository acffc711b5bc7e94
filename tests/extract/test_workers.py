"""Hostile texts: each is the verdict on its own sample; the harness and the other texts go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.errors import ExtractionError
from assay.extract import NO_CODE, extract, workers
from assay.extract.workers import (
    LONGEST,
    Extraction,
    ExtractionLimits,
    ExtractionRequest,
    Extractor,
)
from assay.types import Problem, Program, Tests

PROBLEM = Problem("t", 'def f(x):\n    """Double."""\n', "", Tests("f", ""))
CODE = "def f(x):\n    return 2 * x\n"
RIGHT = Extraction(Program(CODE, "whole"))
QUICK = ExtractionLimits(cpu_s=1.0)
ENDLESS = "\n        while True: pass"


def extract_all(extractor: Extractor, *texts: str) -> list[Extraction]:
    requests = ((None, ExtractionRequest(text, PROBLEM, "chat")) for text in texts)
    return [found for _, found in extractor.in_order(requests)]


def test_programs_are_the_same_as_in_this_process() -> None:
    texts = [CODE, f"Sure:\n```python\n{CODE}```", "no", "\0", "def f(): '\ud800'", "é\u2028", ""]
    with Extractor() as extractor:
        found = extract_all(extractor, *texts * 20)
    assert [one.program for one in found] == [extract(t, PROBLEM, "chat") for t in texts] * 20
    assert {one.reason for one in found if one.program == NO_CODE} == {"no-code"}


@pytest.mark.slow
def test_a_text_that_takes_too_long_is_its_own_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit, one such text stops the whole run for hours."""
    spoil(monkeypatch, ENDLESS)
    with Extractor(limits=QUICK) as extractor:
        found = extract_all(extractor, CODE, "SPOIL", CODE)
    why = Extraction(NO_CODE, "extraction", "no result within 1 s of CPU time")
    assert found == [RIGHT, why, RIGHT]


def test_a_text_that_is_too_long_is_not_sent() -> None:
    with Extractor() as extractor:
        found = extract_all(extractor, CODE, "x" * (LONGEST + 1), CODE)
    assert [one.reason for one in found] == ["", "too-long", ""]


def spoil(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """Let the worker's own code do what the statement says when a text is ``SPOIL``."""
    spoilt = (
        "from assay.extract import _worker; real = _worker.explain_extraction\n"
        f"def explain_extraction(text, *rest):\n    if text == 'SPOIL': {statement}\n"
        "    return real(text, *rest)\n"
        "_worker.explain_extraction = explain_extraction\n"
    )
    before, after = workers.SCRIPT.split("from assay", 1)
    script = f"{before}\n{spoilt}from assay{after}"
    options = [script if part == workers.SCRIPT else part for part in workers.OPTIONS]
    monkeypatch.setattr(workers, "OPTIONS", options)


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("raise RecursionError('deep')", "RecursionError: deep"),
        ("raise KeyError(1)", "KeyError: 1"),
        ("bytearray(2 << 30)", "MemoryError: "),
        ("import os; os.abort()", "the worker process ended (SIGABRT)"),
        ("import os; os._exit(3)", "the worker process ended (exit code 3)"),
        ("import time; time.sleep(60)", "no result within 2 s"),
        ("raise SystemExit", "the worker process ended (exit code 0)"),
    ],
)
def test_whatever_happens_to_a_worker_is_one_samples_verdict(
    monkeypatch: pytest.MonkeyPatch, statement: str, detail: str
) -> None:
    """Neither an exception nor a crash in extraction may end the run."""
    spoil(monkeypatch, statement)
    with Extractor(limits=ExtractionLimits(wall_s=2.0)) as extractor:
        found = extract_all(extractor, CODE, "SPOIL", CODE)
    assert found == [RIGHT, Extraction(NO_CODE, "extraction", detail), RIGHT]


def test_a_worker_that_works_slowly_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict must not depend on the time that other processes leave to the worker."""
    work = "import time; end = time.process_time() + 0.5\n"
    slow = "        while time.process_time() < end: time.sleep(0.03) or sum(range(200_000))"
    spoil(monkeypatch, f"\n        {work}{slow}")
    with Extractor(limits=ExtractionLimits(wall_s=0.5)) as extractor:
        (found,) = extract_all(extractor, "SPOIL")
    assert found.reason == "no-code"


def test_workers_that_cannot_start_are_an_error() -> None:
    opened = Extractor(interpreter="/bin/false")
    with opened as extractor, pytest.raises(ExtractionError, match="no worker process"):
        extract_all(extractor, CODE)


def test_an_error_of_the_source_comes_after_what_was_read() -> None:
    def requests() -> Iterator[tuple[int, ExtractionRequest] | None]:
        yield 0, ExtractionRequest(CODE, PROBLEM, "chat")
        yield None
        raise ValueError("no more")

    found: list[tuple[int, Extraction]] = []
    with Extractor() as extractor, pytest.raises(ValueError, match="no more"):
        found.extend(extractor.stream(requests()))
    assert found == [(0, RIGHT)]


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return met


def children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def has_worked(pid: int) -> bool:
    """Return whether a process has used half a second of CPU time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 0.5


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


HARNESS = """
import pytest
from tests.extract.test_workers import ENDLESS, extract_all, spoil
from assay.extract.workers import ExtractionLimits, Extractor
spoil(pytest.MonkeyPatch(), ENDLESS)
with Extractor(limits=ExtractionLimits(cpu_s=100.0)) as extractor:
    extract_all(extractor, "SPOIL")
"""


def heed_interrupts() -> None:
    """Undo what a shell does to commands in the background: they ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_harness_while_they_work(ending: signal.Signals) -> None:
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        preexec_fn=heed_interrupts,
    )
    try:
        assert wait_for(lambda: any(map(has_worked, children(harness.pid))))
        workers = children(harness.pid)
        harness.send_signal(ending)
        harness.wait(20)
        assert wait_for(lambda: not any(map(is_running, workers)), 5.0)
    finally:
        harness.kill()
        harness.wait()
