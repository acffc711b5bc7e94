"""Time an evaluation next to busy processes, and alone, in turn.

    python benchmarks/busy.py [--rounds 3] [--busy 2] [--limit 2.5] [-- --threads 1]

Runs ``assay eval mini`` with the default model, alone and with ``--busy`` other processes that
compute without a pause, ``--rounds`` times each. What comes after ``--`` is passed to the command.
Exits with 1 if the median time with them is more than ``--limit`` times the median time alone. Two
busy processes take half of two cores, so that 2 is what a fair scheduler allows.

Other work on the machine slows both down. The load average before each run shows it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

LONGEST_S = 600  # of a run; busy processes end by themselves soon after
BUSY = f"import time\nend = time.monotonic() + {LONGEST_S + 10}\nwhile time.monotonic() < end: pass"


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep ``count`` processes computing."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def time_evaluation(options: list[str]) -> float:
    """Return the seconds that one evaluation takes, from nothing to a result."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "assay", "eval", "mini", "--no-cache", "--json"]
        started = time.monotonic()
        subprocess.run(
            [*command, "--results-dir", folder, *options],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=LONGEST_S,
        )
        return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--limit", type=float, default=2.5)
    parser.add_argument("options", nargs="*", help="options of assay eval")
    given = parser.parse_args()
    seconds: dict[int, list[float]] = {0: [], given.busy: []}
    for _ in range(given.rounds):
        for count, times in seconds.items():
            load = os.getloadavg()[0]
            with busy_processes(count):
                times.append(time_evaluation(given.options))
            print(f"with {count} busy: {times[-1]:.1f} s (load average {load:.1f})", flush=True)
    alone, busy = (statistics.median(times) for times in seconds.values())
    ratio = busy / alone
    print(f"median alone {alone:.1f} s, with {given.busy} busy {busy:.1f} s: {ratio:.2f} times")
    sys.exit(ratio > given.limit)


if __name__ == "__main__":
    main()
