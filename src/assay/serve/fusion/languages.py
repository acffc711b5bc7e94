"""Run programs of a language in the sandbox, as they are, without tests."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.judging import JudgeTask
from assay.serve.backlog import StageSupervisor, Task, Ticket
from assay.serve.stage import JudgeAnswer, JudgeWork
from assay.types import Cases, Limits, Problem, Tests

OUTPUT_BYTES = 1 << 20
PROBE_S = 120.0
ATTEMPTS = 3
GROUP = "run"  # of the one call of ``run_inside``
# Languages by their names in SandboxFusion, with a program that shows that they work.
PROBES = {"python": "print(6 * 7)", "bash": "echo $((6 * 7))"}
SCRIPT = Path(__file__).with_name("run_inside.py").read_text()
# The call has no expected value, so that what it returns is the outcome.
MATCHER = "def matcher():\n    return None\n"
CASES = Cases({GROUP: [[]]}, {}, SCRIPT)
RUN = JudgeTask(Problem("run", "", "", Tests("run", MATCHER, SCRIPT, "separated", CASES)))


class EndedRun(NamedTuple):
    """The end of a program as ``run_inside`` saw it."""

    exit_code: int
    seconds: float
    output: bytes
    errors: bytes
    files: Mapping[str, bytes]


def make_run(
    number: int,
    language: str,
    code: str,
    limits: Limits,
    stdin: str = "",
    files: Sequence[tuple[str, str]] = (),
    fetch: Sequence[str] = (),
) -> Task:
    """Return the work that runs a program. ``files`` are names with contents in base64."""
    job = (language, code, stdin, list(files), list(fetch), OUTPUT_BYTES)
    return RUN, JudgeWork(number, "program", f"JOB = {job!r}\n", limits, read_outputs=read_run)


def read_run(cases: Cases | None) -> EndedRun | str | None:
    """Return how a run ended, or why it could not start, or None if it was stopped.

    A program may forge either. It is read as it is encoded: to decode it can take long.
    """
    if cases is None:
        return None
    try:
        match cases.expected[GROUP][0]:
            case str(why):
                return why
            case {"tuple": [int(code), float(seconds), out, err, list(files)]}:
                outputs = bytes.fromhex(out["bytearray"]), bytes.fromhex(err["bytearray"])
                pairs = [file["tuple"] for file in files]
                contents = {str(name): bytes.fromhex(data["bytearray"]) for name, data in pairs}
                return EndedRun(code, seconds, *outputs, contents)
    except (ValueError, TypeError, KeyError, IndexError):
        pass
    return None


def find_languages(engine: StageSupervisor) -> list[str]:
    """Return the languages whose programs run in this sandbox.

    One that a busy machine could not try is tried again: it would be missing until the end.
    """
    answers: dict[str, JudgeAnswer] = {}
    for _ in range(ATTEMPTS):
        missing = [
            name for name in PROBES if name not in answers or answers[name].status == "invalid"
        ]
        if not missing:
            break
        answers |= _try(engine, missing)
    ends = {name: answer.outputs for name, answer in answers.items()}
    return [
        name
        for name in PROBES
        if isinstance(end := ends.get(name), EndedRun) and end.output.strip() == b"42"
    ]


def _try(engine: StageSupervisor, languages: Sequence[str]) -> dict[str, JudgeAnswer]:
    """Return how the probes of languages ended, as far as they did in time."""
    backlog = engine.backlog
    arrived: queue.SimpleQueue[Sequence[JudgeAnswer]] = queue.SimpleQueue()
    tasks = [make_run(backlog.next_number(), one, PROBES[one], Limits()) for one in languages]
    names = {work.number: name for (_, work), name in zip(tasks, languages, strict=True)}
    ticket = Ticket("", 0, arrived.put, deque(tasks))
    engine.submit(ticket)
    answers: dict[str, JudgeAnswer] = {}
    while len(answers) < len(languages):
        try:
            batch = arrived.get(timeout=PROBE_S)
        except queue.Empty:
            break
        answers.update((names[answer.number], answer) for answer in batch)
    backlog.cancel(ticket)
    return answers
