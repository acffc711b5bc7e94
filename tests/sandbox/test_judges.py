"""Judge processes give the verdicts that one process gives, and lose nothing when one ends."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from assay.errors import SandboxError
from assay.sandbox import Item
from assay.sandbox.judges import dispatch, judge_messages, processes
from assay.sandbox.judges.judge_messages import ContextsReceived, ContextsSent
from assay.sandbox.judges.processes import JudgeProcesses, split_cores
from assay.sandbox.kinds.process import ProcessSandbox, count_judges, open_judges
from assay.types import Cases, Job, Limits, Program, Tests, Verdict
from assay.work.lock import open_file_lock
from tests.e2e.test_resume import Pid, descendants, survivors
from tests.security.in_tiers import STRONGEST

GOOD = "def f(x):\n    return 2 * x\n"
TESTS = Tests("f", "assert f(2) == 4")
PROGRAMS = {
    "right": (GOOD, "pass", "passed"),
    "wrong": ("def f(x):\n    return x\n", "fail", "wrong-answer"),
    "raises": ("def f(x):\n    return x.y\n", "fail", "exception"),
    "syntax": ("def f(:", "fail", "syntax"),
    "leaves": ("import os\nos._exit(0)", "fail", "exit"),
    "killed": ("import os\nos.kill(os.getpid(), 9)", "fail", "signal"),
}
NAMES = list(PROGRAMS)


def job(name: str, sample: int, code: str = "", tests: Tests = TESTS, **limits: Any) -> Job:
    return Job(name, sample, Program(code or PROGRAMS[name][0], "x"), tests, Limits(**limits))


def mixed(count: int) -> list[Job]:
    return [job(NAMES[number % len(NAMES)], number) for number in range(count)]


def check_verdicts(verdicts: list[Verdict], count: int) -> None:
    """Fail unless every sample has one verdict, the right one."""
    assert sorted(v.sample for v in verdicts) == list(range(count))
    for verdict in verdicts:
        assert (verdict.status, verdict.reason) == PROGRAMS[verdict.task_id][1:], verdict


def judge_pids(sandbox: JudgeProcesses) -> list[int]:
    return [one.pid for one in sandbox._alive]


@pytest.fixture(scope="module")
def judges() -> Iterator[JudgeProcesses]:
    opened = open_judges(4, STRONGEST, 2)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("workers", "cores", "judges"),
    [
        (1, 16, 0),
        (2, 16, 0),
        (3, 16, 2),
        (4, 16, 2),
        (16, 16, 16),
        (5, 16, 3),
        (64, 16, 16),
        (15, 16, 8),
        (8, 8, 8),
        (1, 1, 0),
        (2, 2, 0),
        (60, 2, 0),
        (3, 3, 0),
        (4, 4, 2),
    ],
)
def test_processes_share_the_workers_where_there_are_cores(
    workers: int, cores: int, judges: int
) -> None:
    assert count_judges(workers, cores) == judges


@pytest.mark.parametrize(
    ("cores", "judges", "expected"),
    [
        (range(16), 8, [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15)]),
        (range(16), 2, [tuple(range(8)), tuple(range(8, 16))]),
        ((1, 3, 5, 7, 9, 11, 13, 15), 3, [(1, 3), (5, 7, 9), (11, 13, 15)]),
        (range(4), 2, [(), ()]),
    ],
)
def test_judges_share_all_allowed_cores(
    cores: Sequence[int], judges: int, expected: list[tuple[int, ...]]
) -> None:
    assert split_cores(set(cores), judges) == expected


def test_a_judge_and_its_workers_stay_on_their_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    own = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(processes, "LEAST_CORES", 2)
    opened = open_judges(4, STRONGEST, 2)
    tests = Tests("f", "assert f(2) == 4", "import os\n")
    code = "import os\nassert len(os.sched_getaffinity(0)) == {}\n" + GOOD
    jobs = [job("right", n, code.format(max(1, len(own) // 2)), tests) for n in range(20)]
    try:
        verdicts = list(opened.judge(iter(jobs)))
        found = [os.sched_getaffinity(pid) for pid in judge_pids(opened)]
    finally:
        opened.close()
    assert {v.status for v in verdicts} == {"pass"}, verdicts[0]
    if len(own) > 1:
        assert set().union(*found) == set(own)
        assert not found[0] & found[1]


def test_times_are_those_of_the_own_cores() -> None:
    """A process that is bound to one core does not count the idle time of others."""
    script = (
        "import os, time\n"
        "from assay.sandbox.inside.isolation.machine import Machine\n"
        "everything = Machine()\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "own = Machine()\n"
        "first = [m.busy_s() + m.idle_s() for m in (own, everything)]\n"
        "time.sleep(1)\n"
        "print(*(m.busy_s() + m.idle_s() - b for m, b in zip((own, everything), first)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    own_s, all_s = map(float, done.stdout.split())
    assert 0.7 < own_s < 1.6
    assert all_s > own_s * 0.8 * len(os.sched_getaffinity(0))


def test_each_program_gets_its_verdict_in_any_order(judges: JudgeProcesses) -> None:
    jobs = mixed(120)
    for _ in range(2):
        check_verdicts(list(judges.judge(iter(jobs))), 120)
        random.shuffle(jobs)
    assert len(judge_pids(judges)) == 2


def test_jobs_with_equal_keys_have_a_verdict_each(judges: JudgeProcesses) -> None:
    jobs = [job(NAMES[n % 2], 0) for n in range(60)]
    verdicts = list(judges.judge(iter(jobs)))
    assert sorted(v.status for v in verdicts) == ["fail"] * 30 + ["pass"] * 30
    assert {v.sample for v in verdicts} == {0}


def test_short_lists_are_judged_here() -> None:
    opened = open_judges(4, STRONGEST, 2)
    try:
        check_verdicts(list(opened.judge(mixed(6))), 6)
        assert judge_pids(opened) == []
    finally:
        opened.close()


def test_outputs_come_back(judges: JudgeProcesses) -> None:
    cases = Cases({"base": [[1], [2]]}, {}, "d")
    tests = Tests("f", "", integrity="separated", cases=cases)
    jobs = [job("right", n, tests=tests) for n in range(40)]
    found = list(judges.outputs(iter(jobs)))
    assert len(found) == 40
    alone = ProcessSandbox(1, STRONGEST)
    try:
        ((_, expected),) = alone.outputs(jobs[:1])
    finally:
        alone.close()
    assert {str(c and c.expected) for _, c in found} == {str(expected and expected.expected)}


def test_two_threads_can_judge_at_once(judges: JudgeProcesses) -> None:
    found: list[list[Verdict]] = []
    threads = [
        threading.Thread(target=lambda: found.append(list(judges.judge(iter(mixed(60))))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for verdicts in found:
        check_verdicts(verdicts, 60)
    assert len(found) == 2


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_judge_that_ends_is_replaced_and_loses_nothing(
    judges: JudgeProcesses, ending: signal.Signals
) -> None:
    family: set[Pid] = set()
    verdicts = []
    for number, verdict in enumerate(judges.judge(iter(mixed(150)))):
        verdicts.append(verdict)
        if number in (10, 60):
            (victim, *_) = judge_pids(judges)
            family |= descendants(victim)
            os.kill(victim, ending)
    check_verdicts(verdicts, 150)
    assert survivors(family, 5.0) == []


@pytest.mark.slow
def test_a_program_that_loses_every_judge_is_invalid_and_never_failed() -> None:
    """Kill each judge that has it, as a program would that breaks the harness itself."""
    opened = open_judges(2, STRONGEST, 2)
    sleeps = "import time\ntime.sleep(20)\ndef f(x): return 2 * x\n"
    started = threading.Event()

    def jobs() -> Iterator[Job]:
        yield job("slow", 0, sleeps)
        started.set()
        yield from (job("right", n) for n in range(1, 40))

    def kill() -> None:
        started.wait()
        deadline = time.monotonic() + 60
        while not verdicts.get(0) and time.monotonic() < deadline:
            for pid in judge_pids(opened):
                if "time.sleep" in "".join(commands_below(pid)) or len(verdicts) >= 39:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)

    verdicts: dict[int, Verdict] = {}
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for verdict in opened.judge(jobs()):
            verdicts[verdict.sample] = verdict
    except SandboxError as error:  # all processes ended several times in a row
        assert "judge process ended" in str(error)
        verdicts.setdefault(0, Verdict("slow", 0, "invalid", "sandbox-error"))
    finally:
        opened.close()
        killer.join()
    assert {v.status for n, v in verdicts.items() if n} == {"pass"}
    assert (verdicts[0].status, verdicts[0].reason) == ("invalid", "sandbox-error")


def commands_below(pid: int) -> list[str]:
    found = []
    for child in descendants(pid):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{child}/cmdline").read_text())
    return found


def test_processes_that_cannot_start_are_an_error_not_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = open_judges(4, STRONGEST, 2)
    monkeypatch.setattr(dispatch, "INTERPRETER", ("/bin/false",))
    try:
        verdicts: list[Verdict] = []
        with pytest.raises(SandboxError, match="judge process ended .exit code 1.*in a row"):
            verdicts.extend(opened.judge(iter(mixed(60))))
        assert {v.status for v in verdicts} <= {"invalid"}
        monkeypatch.undo()
        check_verdicts(list(opened.judge(iter(mixed(60)))), 60)
    finally:
        opened.close()


def test_a_worker_that_cannot_start_is_invalid_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judges start, their fork servers do not."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    script = dispatch.SCRIPT.replace(
        "from assay.sandbox.judges.main import main;",
        "from assay.sandbox.host import local; local.OPTIONS = ('-c', 'pass');"
        "from assay.sandbox.judges.main import main;",
    )
    interpreter = tuple(
        script if part == dispatch.SCRIPT else part for part in dispatch.INTERPRETER
    )
    monkeypatch.setattr(dispatch, "INTERPRETER", interpreter)
    opened = open_judges(3, STRONGEST, 2)
    try:
        verdicts = list(opened.judge(job("right", n) for n in range(4)))
    finally:
        opened.close()
    assert {(v.status, v.reason) for v in verdicts} == {("invalid", "sandbox-error")}
    assert len(verdicts) == 4


def test_a_missing_environment_ends_the_run(judges: JudgeProcesses) -> None:
    bad = Job("t", 0, Program(GOOD, "x"), TESTS, environment="no-such-environment")
    with pytest.raises(Exception, match="no-such-environment"):
        list(judges.judge(iter([bad])))
    check_verdicts(list(judges.judge(iter(mixed(20)))), 20)


def test_an_error_of_the_source_comes_after_the_work_taken(judges: JudgeProcesses) -> None:
    def jobs() -> Iterator[Job]:
        yield from mixed(30)
        raise RuntimeError("the model is gone")

    verdicts: list[Verdict] = []
    with pytest.raises(RuntimeError, match="the model is gone"):
        verdicts.extend(judges.judge(jobs()))
    check_verdicts(verdicts, 30)
    check_verdicts(list(judges.judge(iter(mixed(20)))), 20)


@pytest.mark.slow
class Unsendable(str):
    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot be pickled")


def test_an_item_that_cannot_be_sent_is_an_error_and_no_wait(judges: JudgeProcesses) -> None:
    others = [job("right", number) for number in range(40)]
    unsendable = job("right", 40, tests=Tests("f", Unsendable("assert f(2) == 4")))
    with pytest.raises(TypeError, match="cannot be pickled"):
        list(judges.judge([*others, unsendable, *others]))
    check_verdicts(list(judges.judge(mixed(40))), 40)


def test_jobs_are_not_read_far_ahead() -> None:
    taken = 0

    def endless() -> Iterator[Job]:
        nonlocal taken
        while True:
            taken += 1
            yield job("right", taken)

    before = descendants(os.getpid())
    opened = open_judges(4, STRONGEST, 2)
    stream = opened.judge(endless())
    for _ in range(10):
        next(stream)
    family = descendants(os.getpid()) - before
    time.sleep(1)
    assert taken < 100
    stream.close()  # type: ignore[attr-defined]
    assert judge_pids(opened) == []
    opened.close()
    assert survivors(family) == []


def test_programs_that_sleep_give_their_place_to_others(judges: JudgeProcesses) -> None:
    sleeper = "import time\ntime.sleep(6)\n" + GOOD
    jobs = [job("right", n, sleeper) for n in range(4)]
    jobs += [job("right", n) for n in range(4, 60)]
    order = [v.sample for v in judges.judge(iter(jobs))]
    assert len(order) == 60
    assert set(order[-2:]) <= set(range(4))  # the others were done before them
    assert order.index(59) < 58


@pytest.mark.slow
def test_closing_while_it_judges_ends_everything(judges: JudgeProcesses) -> None:
    jobs = (job("slow", n, "import time\ntime.sleep(25)") for n in range(8))
    timer = threading.Timer(3.0, judges.close)
    timer.start()
    started = time.monotonic()
    with pytest.raises(SandboxError, match="closed"):
        list(judges.judge(jobs))
    assert time.monotonic() - started < 20
    timer.join()
    check_verdicts(list(judges.judge(iter(mixed(20)))), 20)


HARNESS = """
import sys
from assay.sandbox.kinds.process import open_judges
from assay.types import Job, Program, Tests
opened = open_judges(4, "auto", 2)
tests = Tests("f", "")
slow = "import time\\ntime.sleep(60)\\n"
fork = "import os, time\\nfor i in range(5):\\n    if not os.fork(): os.setsid(); time.sleep(60)\\n"
jobs = [Job(str(n), n, Program(fork + slow, "x"), tests) for n in range(40)]
print("started", flush=True)
list(opened.judge(iter(jobs)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_the_harness_ends(ending: signal.Signals) -> None:
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    try:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"started\n"
        deadline = time.monotonic() + 60
        while len(descendants(harness.pid)) < 20 and time.monotonic() < deadline:
            time.sleep(0.1)
        family = descendants(harness.pid)
        assert len(family) >= 20
        harness.send_signal(ending)
        harness.wait(30)
        assert survivors(family, 10.0) == []
    finally:
        harness.kill()
        harness.communicate()


def test_one_alone_waits_for_all_and_holds_all_up(tmp_path: Path) -> None:
    """Two processes share a lock; what one writes alone, the other never interrupts."""
    lock = open_file_lock()
    log = tmp_path / "log"
    script = f"""
import sys, time
from assay.work.lock import FileRWLock
lock = FileRWLock(*map(int, sys.argv[1:]))
with open({str(log)!r}, "a", buffering=1) as log:
    for _ in range(10):
        with lock.exclusive():
            log.write("in\\n"); time.sleep(0.02); log.write("out\\n")
        with lock.shared():
            pass
"""
    gate, room = lock.descriptors
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(gate), str(room)], pass_fds=[gate, room]
    )
    with log.open("a", buffering=1) as mine:
        while other.poll() is None:
            with lock.shared():
                mine.write("shared\n")
                time.sleep(0.001)
    assert other.returncode == 0
    lines = log.read_text().split()
    inside = [lines[n + 1] for n, line in enumerate(lines) if line == "in"]
    assert inside == ["out"] * 10
    assert "shared" in lines


def test_contexts_are_sent_once_and_forgotten_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_messages, "ROOM", 3000)
    sent, received = ContextsSent(), ContextsReceived()
    contexts = [Tests(str(n), "x" * 500) for n in range(12)]
    choose = random.Random(1)
    count = 0
    for tag in range(400):
        items = [Item(tag, choose.choice(contexts), n) for n in range(choose.randint(1, 8))]
        message = pickle.loads(pickle.dumps(sent.pack(items)))
        count += len(message.contexts)
        assert received.unpack(message) == items
    assert 12 < count < 2000
    again = sent.pack([Item(0, items[-1].context, 0)])
    assert again.contexts == []
