"""Count the files of src that a command visits: those with a function that is called.

    python benchmarks/visited_files.py [--list] eval humaneval --problems 1

Only the main process is traced, all its threads included. A module that is only imported does not
count, nor does what runs while modules are imported.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = str(Path(__file__).parents[1] / "src" / "assay")


def main(arguments: list[str]) -> None:
    """Run a command and print how many files it visits."""
    show = arguments[:1] == ["--list"]
    visited: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        name = code.co_filename
        known = event != "call" or name in visited or not name.startswith(SOURCE)
        if not (known or code.co_name == "<module>" or is_importing(frame)):
            visited.add(name)

    from assay.cli import main as command

    sys.argv[1:] = arguments[show:]

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        command()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    names = sorted(name.removeprefix(SOURCE + "/") for name in visited)
    if show:
        print(*names, sep="\n")
    print(f"{len(names)} files visited", file=sys.stderr)


def is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported: decorators and registries run then too."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
