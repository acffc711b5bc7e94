"""Run a peer's whole command in a sandbox, because peers run programs without isolation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import assay.sandbox
from assay.data.printable import clean_line
from assay.errors import SandboxError
from assay.peers._confined.messages import Report, Settings, TreeLimits
from assay.peers._installed import find_installation, show
from assay.work.process import ChildProcess

__all__ = ["WORK", "PeerCommand", "TreeLimits", "run_isolated"]

WORK = Path("/tmp")  # inside: where the command starts, and all that it can write to
SCRIPT = (
    "import sys; sys.path += sys.argv[1:-1]; from _confined.main import main;"
    "main(int(sys.argv[-1]))"
)
CODE = (Path(__file__).parent, Path(assay.sandbox.__file__).parent)
END_S = 10.0
LONGEST_MESSAGE = 300
LONGEST_REPORT = 1 << 20  # bytes; most of them are the end of the command's output
STOPPED = {
    "wall": "took more than {wall_s} seconds",
    "cpu": "used more than {cpu_s} seconds of CPU time",
    "memory": "used more than {memory_mb} MB of memory",
    "machine": "ran when the machine had less than 512 MB of free memory",
    "output": "wrote more than {output_mb} MB of results",
}


@dataclass(frozen=True, slots=True)
class PeerCommand:
    """Hold a command of another harness, and all that it may see.

    ``inputs`` are files that are copied into the folder ``WORK``. ``readable`` are files and
    folders that the command sees in their own places. ``outputs`` are the names of files in
    ``WORK``, or of folders of files, that are returned.
    """

    arguments: tuple[str, ...]  # the first one is an absolute path
    variables: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    outputs: tuple[str, ...] = ()
    limits: TreeLimits = TreeLimits()  # noqa: RUF009 - a tuple


def run_isolated(command: PeerCommand) -> dict[str, bytes]:
    """Run a command and return the contents of those of its outputs that exist.

    The command sees the system's folders, its own installation and ``readable``, all read-only,
    and none of the harness's environment. It has no network and no privileges. SandboxError says
    that it failed, that it exceeded a limit, or that this machine cannot isolate it.
    """
    name = command.arguments[0]
    report, files = _supervise(_settings(command))
    if report.refused:
        raise SandboxError(
            f"{name}: cannot be isolated on this machine ({clean_line(report.refused)}). "
            "Use Linux 5.12 or later, root or user namespaces, and an installation that other "
            "users can read."
        )
    if report.stopped:
        excess = STOPPED[report.stopped].format(**command.limits._asdict())
        raise SandboxError(
            f"{name}: {excess} and was stopped. One of the samples may be "
            "hostile: score fewer of them at a time to find it."
        )
    if report.status:
        raise SandboxError(f"{name}: failed. {_last_line(report)}")
    return files


def _settings(command: PeerCommand) -> Settings:
    program = Path(command.arguments[0])
    installation = find_installation(program)
    return Settings(
        command=command.arguments,
        variables={
            "PATH": f"{program.parent}:/usr/bin:/bin",
            "HOME": str(WORK),
            "TMPDIR": str(WORK),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            # A thread per core in each process would exceed the limits on large machines.
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            **command.variables,
        },
        inputs={name: str(path) for name, path in command.inputs.items()},
        shown=installation.shown | show(*command.readable),
        hidden=installation.hidden,
        outputs=command.outputs,
        limits=command.limits,
    )


def _supervise(settings: Settings) -> tuple[Report, dict[str, bytes]]:
    """Return the supervisor's report and the files after it.

    The supervisor ends when its input is closed, and with it everything that it has started.
    """
    supervisor = ChildProcess(
        [sys.executable, "-I", "-S", "-B", "-c", SCRIPT, *map(str, CODE)],
        variables={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        folder="/",
    )
    try:
        supervisor.send(json.dumps(settings).encode() + b"\n")
        report = Report(*json.loads(supervisor.receive_line(LONGEST_REPORT)))
        return report, {name: supervisor.receive(size) for name, size in report.sizes.items()}
    except (OSError, EOFError, ValueError) as error:
        raise SandboxError(
            f"{settings.command[0]}: its supervisor was killed. Run the command again."
        ) from error
    finally:
        supervisor.close(END_S)


def _last_line(report: Report) -> str:
    """Return the last line of the command's output. Programs may have written that too."""
    lines = [line.strip() for line in report.stderr.splitlines() if line.strip()]
    return (
        clean_line(lines[-1][-LONGEST_MESSAGE:])
        if lines
        else f"It ended with status {report.status}."
    )
