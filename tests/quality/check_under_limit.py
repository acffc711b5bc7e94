"""Checks every damaged model with little memory: ``python -m tests.quality.check_under_limit DIR``.

DIR holds a sound model of each format. Prints for each case its stages and the seconds they took,
and the most memory that all together needed. A process of its own, because a limit stays.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from pathlib import Path

from assay.quality.check.stages import check
from tests.formats.damaged import copy
from tests.formats.damaged_cases import CASES

MEMORY = 400 << 20  # of a process's own, mapped files apart
LATER = ("tokenizer", "template")  # tried in processes of their own, which takes a while


def main(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    found = {}
    for name, case in CASES.items():
        path = copy(folder / case.format, folder / "damaged" / case.format)
        case.damage(path)
        started, stages = time.process_time(), []
        for stage in check(str(path), run=False):
            stages.append(dataclasses.asdict(stage))
            if stage.name == "layers" and case.stage not in LATER:
                break
        found[name] = {"stages": stages, "seconds": time.process_time() - started}
    print(json.dumps({"cases": found, "peak": peak_bytes()}))


def peak_bytes() -> int:
    """Not by getrusage, which counts what the parent had when it forked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
