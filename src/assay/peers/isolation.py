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
from assay.peers._confined.messages import SCRATCH, Report, Settings, TreeLimits
from assay.work.process import ChildProcess

__all__ = ["WORK", "PeerCommand", "TreeLimits", "find_installation", "run_isolated"]

WORK = Path(SCRATCH)  # inside: where the command starts, and all that it can write to
SCRIPT = (
    "import sys; sys.path += sys.argv[1:-1]; from _confined.main import main;"
    "main(int(sys.argv[-1]))"
)
CODE = (Path(__file__).parent, Path(assay.sandbox.__file__).parent)
END_S = 10.0
LONGEST_MESSAGE = 300
LONGEST_REPORT = 1 << 20  # bytes; most of them are the end of the command's output
SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib32", "/lib64", "/bin")))
# Created inside. Host files at these places would be hidden, or would hide them.
RESERVED = tuple(map(Path, ("/proc", "/sys", "/dev")))
STOPPED = {
    "wall": "took more than {wall_s} seconds",
    "cpu": "used more than {cpu_s} seconds of CPU time",
    "memory": "used more than {memory_mb} MB of memory",
    "machine": "ran when the machine had less than 512 MB of free memory",
    "output": "wrote more than {output_mb} MB of results",
}


@dataclass(frozen=True, slots=True)
class PeerCommand:
    """A command of another harness, and all that it may see.

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


@dataclass(frozen=True, slots=True)
class Installation:
    """Host files by the places where the command expects them, and what is hidden of them."""

    shown: dict[str, str]
    hidden: tuple[str, ...] = ()


def find_installation(command: Path) -> Installation:
    """Return the command's virtual environment and that environment's Python.

    A command outside of an environment needs only its own file, unless it is in the ``bin`` of a
    Python installation. Folders that hold the user's home are refused.
    """
    for path in (command, command.resolve()):
        environment = path.parent.parent
        if (environment / "pyvenv.cfg").is_file():
            base = _base(environment / "pyvenv.cfg")
            return Installation(
                show(environment, *([] if base is None else [base])),
                () if base is None else tuple(_site_packages(base)),
            )
    prefix = command.resolve().parent.parent
    if command.resolve().parent.name == "bin" and any(prefix.glob("bin/python3*")):
        return Installation(show(prefix))
    return Installation(show(command))


def show(*paths: Path) -> dict[str, str]:
    """Map places to host files: each path as it is named, and as its links resolve."""
    shown = {}
    for path in paths:
        named, real = path.absolute(), path.resolve()
        for place in (named, real):
            if not any(map(place.is_relative_to, SYSTEM)):
                _refuse_too_much(place)
                shown[str(place)] = str(real)
    return shown


def _base(configuration: Path) -> Path | None:
    """Return the prefix of the Python that an environment was created from."""
    for line in configuration.read_text().splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and value.strip():
            folder = Path(value.strip())
            return folder.parent if folder.name == "bin" else folder
    return None


def _site_packages(base: Path) -> list[str]:
    """Return the packages of a Python that is not the system's. Its environments have their own."""
    places = [place for place in show(base) if Path(place).is_dir()]
    return [str(path) for p in places for path in Path(p).glob("lib/python3*/site-packages")]


def _refuse_too_much(place: Path) -> None:
    home = Path.home()
    folders = {home, home.resolve(), home / ".local"}
    if any(folder.is_relative_to(place) for folder in folders):
        raise SandboxError(
            f"{place}: contains your own files, which the isolated command could read. Install the "
            "command in a virtual environment."
        )
    if any(map(place.is_relative_to, RESERVED)):
        raise SandboxError(
            f"{place}: is below /proc, /sys or /dev, which an isolated command cannot read. Move "
            "it elsewhere."
        )
