"""The fork server: isolated once, it forks a process for every program it is sent."""

from __future__ import annotations

import _socket  # sockets, without the many modules around them
import contextlib
import gc
import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from . import judge, root, sample
from .latest import Latest
from .place import Place
from .watch import Kept, Watch

RESULT_BYTES = 1 << 16
OUTPUT_TAIL = 400
LOOK_EVERY_S, LOOK_RARELY_S = 0.02, 0.2


class Zygote:
    """Judges one program after the other; nothing of one is there for the next."""

    def __init__(self, place: Place, jobs: int, link: int, variables: dict[str, str]) -> None:
        self._place = place
        self._jobs = jobs
        self._link = _socket.socket(fileno=link)
        self._kills = place.kills()
        self._codes: Latest[tuple[str, str], tuple[CodeType, CodeType]] = Latest()
        os.chdir(place.scratch)
        os.environ.clear()
        os.environ.update(PATH="/usr/bin:/bin", LANG="C.UTF-8")
        os.environ.update(HOME=place.scratch, TMPDIR=place.scratch, **variables)
        if "tempfile" in sys.modules:  # an import may have asked for the host's folder
            sys.modules["tempfile"].tempdir = None  # type: ignore[attr-defined]
        sys.path[:] = [path for path in sys.path if path.startswith(root.python_folders())]
        self._clean = self._place.scratch_state()
        # Fewer pages are copied when the collector does not write into all our objects.
        gc.collect()
        gc.freeze()

    def judge(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run one program to its end or a limit, remove all traces, tell what was seen."""
        limits, limit = job["limits"], self._place.limit
        job["token"] = os.urandom(16).hex()
        try:
            preamble, tests = self._compiled(job["preamble"], job["tests"])
        except (SyntaxError, ValueError) as error:
            self._pass_on(None)
            return {"sandbox_error": f"the benchmark's own code does not compile: {error}"}
        output, output_end = os.pipe()
        result, result_end = os.pipe()
        # Tests elsewhere call the program through a channel; ours is the program's end of it.
        theirs, channel = _socket.socketpair() if job["apart"] else (None, None)
        if limit:
            limit.reset()
        look_every_s = LOOK_RARELY_S if limit else LOOK_EVERY_S
        watch = Watch(limits, self._place.processes, self._out_of_memory, look_every_s)
        try:
            pid = os.fork()
        except OSError as error:
            for descriptor in (output, output_end, result, result_end):
                os.close(descriptor)
            self._pass_on(None)
            return {"sandbox_error": f"fork: {error.strerror}"}
        if pid == 0:
            sample.run(job, preamble, tests, output_end, result_end, channel, self._enter)
        if theirs:
            self._pass_on(theirs)
            theirs.close()
        os.close(output_end)
        os.close(result_end)
        kept = {output: Kept(limits["output_bytes"]), result: Kept(RESULT_BYTES)}
        ended = os.pidfd_open(pid)
        watch.run(ended, kept, self._jobs, channel)
        self._place.kill_all()
        _, status, used = os.wait4(pid, 0)
        wall_s = watch.elapsed
        cpu_s = used.ru_utime + used.ru_stime + self._reap()
        for source, text in kept.items():  # every writer is dead: this ends
            while text.take(os.read(source, RESULT_BYTES)):
                pass
            os.close(source)
        os.close(ended)
        if channel:
            channel.close()
        self._clean_up()
        told = sample.checked(kept[result].data, job["token"])
        out_of_memory = self._out_of_memory()
        if out_of_memory:
            self._kills = self._place.kills()
        return {
            "result": told,
            "exit_code": os.waitstatus_to_exitcode(status),
            "stopped": watch.stopped,
            "starved": watch.starved,
            "out_of_memory": out_of_memory,
            "wall_s": round(wall_s, 4),
            "cpu_s": round(cpu_s, 4),
            "peak_mb": round((limit.peak_bytes() if limit else used.ru_maxrss * 1024) / 2**20, 1),
            "output_tail": kept[output].data[-OUTPUT_TAIL:].decode(errors="replace"),
        }

    def _out_of_memory(self) -> bool:
        return self._place.kills() > self._kills

    def _pass_on(self, channel: _socket.socket | None) -> None:
        """To the oracle, which waits for one message a program."""
        passed = []
        if channel:
            number = channel.fileno().to_bytes(4, sys.byteorder)
            passed = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)]
        self._link.sendmsg([b"c"], passed)

    def _reap(self) -> float:
        """Wait for all that is left; its CPU seconds."""
        cpu_s = 0.0
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    self._place.kill_all()
                    _, _, used = os.wait4(-1, 0)
                cpu_s += used.ru_utime + used.ru_stime
        return cpu_s

    def _enter(self) -> None:
        if self._place.limit:
            self._place.limit.enter()
        self._place.confine()

    def _clean_up(self) -> None:
        if self._place.scratch_state() != self._clean:
            os.chdir("/")
            self._place.renew_scratch()
            os.chdir(self._place.scratch)
            self._clean = self._place.scratch_state()

    def _compiled(self, preamble: str, tests: str) -> tuple[CodeType, CodeType]:
        """The benchmark's own code: the same for every sample of a problem."""
        key = (preamble, tests)
        if key not in self._codes.items:
            codes = judge.compiled(preamble, judge.PREAMBLE), judge.compiled(tests, judge.TESTS)
            self._codes.add(key, codes, len(preamble) + len(tests))
        return self._codes.items[key]


def start(
    place: Place, jobs: int, settings: dict[str, Any]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return Zygote(place, jobs, settings["link"], settings["variables"]).judge
