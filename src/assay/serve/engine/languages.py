"""Run programs of a language in the sandbox, as they are, without tests."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.judging import JudgeTask
from assay.serve.engine.backlog import Ticket
from assay.serve.engine.engine import StageSupervisor
from assay.serve.engine.stage import GROUP
from assay.serve.engine.work import JudgeAnswer, JudgeWork
from assay.types import Cases, Limits, Problem, Tests

OUTPUT_BYTES = 1 << 20
PROBE_S = 120.0
ATTEMPTS = 3
SCRIPT = Path(__file__).with_name("run_inside.py").read_text()
# The call has no expected value, so that what it returns is the outcome.
MATCHER = "def matcher():\n    return None\n"


@dataclass(frozen=True, slots=True)
class Language:
    """A language by its name in SandboxFusion, and a program that shows that it works."""

    name: str
    probe: str


KNOWN = (Language("python", "print(6 * 7)"), Language("bash", "echo $((6 * 7))"))
RUN = JudgeTask(
    Problem(
        "run",
        prompt="",
        reference="",
        tests=Tests("run", MATCHER, SCRIPT, "separated", Cases({GROUP: [[]]}, {}, SCRIPT)),
    )
)


def make_run(
    number: int,
    language: str,
    code: str,
    limits: Limits,
    given: str = "",
    files: Sequence[tuple[str, str]] = (),
    fetch: Sequence[str] = (),
) -> tuple[JudgeTask, JudgeWork]:
    """Return the work that runs a program. ``files`` are names with contents in base64."""
    job = (language, code, given, list(files), list(fetch), OUTPUT_BYTES)
    return RUN, JudgeWork(number, "run", f"JOB = {job!r}\n", limits)


def find_languages(engine: StageSupervisor) -> dict[str, Language]:
    """Return the languages whose programs run in this sandbox.

    One that a busy machine could not try is tried again: it would be missing until the end.
    """
    found: dict[str, Language] = {}
    missing = list(KNOWN)
    for _ in range(ATTEMPTS):
        answers = _try(engine, missing)
        for one in missing:
            answer = answers.get(one.name)
            if answer and answer.ended and answer.ended.output.strip() == b"42":
                found[one.name] = one
        missing = [
            one
            for one in missing
            if one.name not in answers or answers[one.name].status == "invalid"
        ]
        if not missing:
            break
    return {one.name: one for one in KNOWN if one.name in found}


def _try(engine: StageSupervisor, languages: Sequence[Language]) -> dict[str, JudgeAnswer]:
    """Return how the probes of languages ended, as far as they did in time."""
    backlog = engine.backlog
    arrived: queue.SimpleQueue[Sequence[JudgeAnswer]] = queue.SimpleQueue()
    tasks = [make_run(backlog.next_number(), one.name, one.probe, Limits()) for one in languages]
    names = {work.number: one.name for (_, work), one in zip(tasks, languages, strict=True)}
    ticket = Ticket("", 0, arrived.put, deque(tasks))
    engine.submit(ticket)
    found: dict[str, JudgeAnswer] = {}
    while len(found) < len(languages):
        try:
            batch = arrived.get(timeout=PROBE_S)
        except queue.Empty:
            break
        found.update((names[answer.number], answer) for answer in batch)
    backlog.cancel(ticket)
    return found
