"""The fork server: isolated once, it forks a process for every program it is sent."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
from types import CodeType
from typing import Any

from . import judge, root, sample, wire
from .place import Place, by_landlock, in_namespaces
from .watch import HarnessGoneError, Kept, Watch

# What programs import most; the rest costs its import in each program.
WARM = (
    "bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "re",
    "string", "typing",
)  # fmt: skip
RESULT_BYTES = 1 << 16
OUTPUT_TAIL = 400
CACHED_CHARS = 4 << 20  # of the benchmark's own code, compiled
LOOK_EVERY_S, LOOK_RARELY_S = 0.02, 0.2


def main() -> None:
    settings = wire.receive(0)
    jobs, reports = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    os.close(null)
    try:
        for name in (*WARM, *settings["imports"]):
            importlib.import_module(name)
        if len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("an import started a thread, which no fork survives")
        if settings["tier"] == "landlock":
            place = by_landlock([jobs, reports])
        else:
            as_root = settings["tier"] == "root"
            place = in_namespaces(
                settings["limits"],
                settings["allowed"],
                as_root=as_root,
                only_zygote=[jobs, reports],
            )
        sample.limit_worker(settings["limits"], place.neighbours)
        zygote = Zygote(place, jobs, settings["variables"])
    except Exception as error:
        wire.send(reports, {"error": f"{type(error).__name__}: {error}"})
        return
    wire.send(reports, {"memory": "cgroup" if place.limit else "watch"})
    with contextlib.suppress(EOFError, HarnessGoneError):
        while True:
            wire.send(reports, zygote.judge(wire.receive(jobs)))
    zygote.kill_all()


class Zygote:
    """Judges one program after the other; nothing of one is there for the next."""

    def __init__(self, place: Place, jobs: int, variables: dict[str, str]) -> None:
        self._place = place
        self._jobs = jobs
        self._kills = place.limit.kills() if place.limit else 0
        self._codes: dict[tuple[str, str], tuple[CodeType, CodeType]] = {}
        self._cached_chars = 0
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
            return {"sandbox_error": f"the benchmark's own code does not compile: {error}"}
        output, output_end = os.pipe()
        result, result_end = os.pipe()
        if limit:
            limit.reset()
        look_every_s = LOOK_RARELY_S if limit else LOOK_EVERY_S
        watch = Watch(limits, self._place.processes, self._out_of_memory, look_every_s)
        try:
            pid = os.fork()
        except OSError as error:
            for descriptor in (output, output_end, result, result_end):
                os.close(descriptor)
            return {"sandbox_error": f"fork: {error.strerror}"}
        if pid == 0:
            sample.run(job, preamble, tests, output_end, result_end, self._enter)
        os.close(output_end)
        os.close(result_end)
        kept = {output: Kept(limits["output_bytes"]), result: Kept(RESULT_BYTES)}
        ended = os.pidfd_open(pid)
        watch.run(ended, kept, self._jobs)
        self.kill_all()
        _, status, used = os.wait4(pid, 0)
        wall_s = watch.elapsed
        cpu_s = used.ru_utime + used.ru_stime + self._reap()
        for source, text in kept.items():  # every writer is dead: this ends
            while text.take(os.read(source, RESULT_BYTES)):
                pass
            os.close(source)
        os.close(ended)
        self._clean_up()
        told = sample.checked(kept[result].data, job["token"])
        out_of_memory = self._out_of_memory()
        if limit and out_of_memory:
            self._kills = limit.kills()
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
        limit = self._place.limit
        return limit is not None and limit.kills() > self._kills

    def kill_all(self) -> None:
        """All that can be signalled from here was started here."""
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)

    def _reap(self) -> float:
        """Wait for all that is left; its CPU seconds."""
        cpu_s = 0.0
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _, used = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    self.kill_all()
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
        if key not in self._codes:
            codes = judge.compiled(preamble, judge.PREAMBLE), judge.compiled(tests, judge.TESTS)
            self._cached_chars += len(preamble) + len(tests)
            while self._codes and self._cached_chars > CACHED_CHARS:
                oldest = next(iter(self._codes))
                self._cached_chars -= len(oldest[0]) + len(oldest[1])
                del self._codes[oldest]
            self._codes[key] = codes
        return self._codes[key]
