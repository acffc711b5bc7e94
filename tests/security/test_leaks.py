"""Nothing of one job is found by another, though it searches all of its memory and files.

If programs are forks of a server that has held every job, the scanners find programs, their output,
preambles and references in all three tiers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from assay.types import Cases, Integrity, Job, Limits, Verdict
from tests.security.in_tiers import COSTLY_TIERS, TIERS, Step, job, judge_in
from tests.security.scanner import mark, scanner

FOUND_NOTHING = "assert f() == 'nothing'"
EVERYWHERE = ("/",)
LIKELY = (".", "/tmp", "/dev/shm", "/var", "/run", "/home", "/root", "/etc")


def marked_job(number: int, integrity: Integrity, randomness: random.Random) -> Job:
    """Return a job with a mark in every part of it; every second one is right."""
    put = {kind: mark(kind, randomness) for kind in ("PR", "OU", "TE", "EX", "PA", "ER", "FI")}
    wide = "\N{PILE OF POO}" if number % 3 == 0 else ""  # four bytes a letter in memory
    code = (
        f"# {put['PR']} {wide}\nimport sys\nprint('{put['OU']}{wide}' * 9)\n"
        f"print('{put['ER']}', file=sys.stderr)\nopen('{put['FI']}', 'w').write('{put['FI']}')\n"
        f"def f(x):\n    text = '{put['PR']}'\n    return x if x else '{put['EX'][:12]}' + "
        f"'{put['EX'][12:]}'\n"
    )
    if number % 2:
        code += f"raise ValueError('{put['ER']}')\n"
    tests = f"# {put['TE']}\nassert f(0) == '{put['EX']}', '{put['TE']}'\nassert f('{put['TE']}')\n"
    preamble = f"PREAMBLE = '{put['PA']}{wide}'\n"
    return job(f"marked-{number}", code, tests, integrity, preamble=preamble)


def reference_job(number: int, randomness: random.Random) -> Job:
    """Return a reference solution whose outputs are computed, as for the plus benchmarks."""
    cases = Cases({"base": [[mark("IN", randomness)]]}, {}, "")
    code = f"def g(x):\n    '''{mark('RE', randomness)}'''\n    return '{mark('RX', randomness)}'\n"
    matcher = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
    return job(f"reference-{number}", code, matcher, entry_point="g", cases=cases)


def scan_job(number: int, integrity: Integrity, *tops: str) -> Job:
    limits = Limits(cpu_s=30, wall_s=60)
    return job(f"scan-{number}", scanner(*tops), FOUND_NOTHING, integrity, limits=limits)


def steps(count: int, every: int, *, walks: int = 1) -> Iterator[Step]:
    """Yield ``count`` programs; every so often they are references, or scanners of both kinds."""
    randomness = random.Random()
    done = 0
    while done < count:
        yield Step([reference_job(done, randomness)], "outputs")
        kinds: list[Integrity] = ["separated", "shared"]
        yield Step([marked_job(done + i, kinds[i % 2], randomness) for i in range(every)])
        done += every + 3
        tops = EVERYWHERE if walks > 0 else LIKELY
        walks -= 1
        yield Step([scan_job(done, integrity, *tops) for integrity in kinds])


def check(verdicts: list[Verdict]) -> None:
    """Fail unless every scanner looked and found nothing, and all else went as it should."""
    scans = [v for v in verdicts if v.task_id.startswith("scan")]
    assert scans
    assert {f"{v.integrity}: {v.detail}" for v in scans if v.status != "pass"} == set()
    for verdict in verdicts:
        if verdict.task_id.startswith("marked"):
            right = int(verdict.task_id.partition("-")[2]) % 2 == 0
            assert verdict.status == ("pass" if right else "fail"), verdict
        else:
            assert verdict.status == "pass", verdict


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_no_mark_of_another_job_is_found(tier: str) -> None:
    check(judge_in(tier, list(steps(60, every=17))))


@pytest.mark.parametrize(
    "programs",
    [pytest.param(500, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.whole)],
)
@pytest.mark.parametrize("tier", COSTLY_TIERS)
def test_no_mark_among_many_programs_is_found(tier: str, programs: int) -> None:
    check(judge_in(tier, list(steps(programs, every=22)), workers=2, timeout_s=600))
