"""Find the folders that an installed command needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.errors import SandboxError

SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib32", "/lib64", "/bin")))
# Created inside. Host files at these places would be hidden, or would hide them.
RESERVED = tuple(map(Path, ("/proc", "/sys", "/dev")))


@dataclass(frozen=True, slots=True)
class Installation:
    """Hold ``shown``, host files by the places where the command expects them, and ``hidden``."""

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
