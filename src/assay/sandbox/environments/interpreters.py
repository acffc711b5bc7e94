"""Choose the Python that judges programs, apart from the one that runs assay.

A verdict can depend on the version of Python: ``sum`` of floats rounds differently since 3.12. So
the default is one version, wherever it is installed, and not the version of whoever runs assay.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay.errors import SandboxError, UsageError
from assay.sandbox.environments import store as environments
from assay.types import Capabilities

DEFAULT = "3.11"  # of the protocol: results of this version can be compared with most others
OLDEST = (3, 11)  # that runs the sandbox's own code
VERSION = re.compile(r"\d\.\d+(\.\d+)?")
ASK_S = 30.0
MOST_ANSWER = 1 << 16  # bytes
# A shim of pyenv, a wrapper and an interpreter of a virtual environment all lead to another file.
ASK = (
    "import json, sys, sysconfig; print(json.dumps([sys.implementation.name, "
    "'.'.join(map(str, sys.version_info[:3])), getattr(sys, '_base_executable', '') or "
    "sys.executable, bool(sysconfig.get_config_var('Py_GIL_DISABLED'))]))"
)
CONDA_FOLDERS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", ".conda")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that can judge. ``source`` says how it was found."""

    path: str
    version: str  # with the patch release
    source: str
    is_chosen: bool = False  # by the user; otherwise it is the default

    @property
    def minor(self) -> str:
        """Return the version without the patch release, which does not change a verdict."""
        return self.version.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Return the text that capabilities and protocols have."""
        return f"cpython {self.version}"


class OwnPython(Protocol):
    """A sandbox whose Python cannot be chosen: that of an image, a guest or another machine."""

    def capabilities(self) -> Capabilities: ...
    def close(self) -> None: ...


class UnusableError(SandboxError):
    """An interpreter that cannot judge programs."""


def choose(python: str = "") -> Interpreter:
    """Return the interpreter for a version or a path; by default Python 3.11, else assay's own.

    Raise SandboxError if it is missing or too old.
    """
    if not python:
        return _find(DEFAULT) or _host()
    return dataclasses.replace(_choose(python), is_chosen=True)


def _choose(python: str) -> Interpreter:
    if VERSION.fullmatch(python):
        _check_version(f"--python {python}", python)
        found = _find(python)
        if found is None:
            raise SandboxError(
                f"--python {python}: not found on PATH, by uv, pyenv or conda. Run 'assay env "
                f"python {python}' to install it, or give the path of an interpreter."
            )
        return found
    if os.sep not in python:
        raise UsageError(
            f"--python {python}: neither a version such as {DEFAULT} nor a path. "
            "Run 'assay env python' to list interpreters."
        )
    path = Path(python).expanduser().absolute()
    if path.is_dir():  # a virtual environment, or where Python is installed
        path /= "bin/python3"
    try:
        return _ask(str(path), "path")
    except UnusableError as error:
        # A shim runs only versions that pyenv is set to, wherever the shim's own version is.
        name = VERSION.search(path.name) if path.parent.name == "shims" else None
        if name and (found := _find(name.group())):
            return found
        raise SandboxError(
            f"--python {python}: {error}. Give another path, or a version such as {DEFAULT}."
        ) from error


def discover() -> list[Interpreter]:
    """Return all interpreters that can judge, each once, newest version first."""
    found = {os.path.realpath(_host().path): _host()} if _host_can_judge() else {}
    for one in _usable(_candidates(""), ""):
        found.setdefault(os.path.realpath(one.path), one)
    return sorted(found.values(), key=lambda one: _parts(one.version), reverse=True)


def install(version: str, announce: Callable[[str], None]) -> Interpreter:
    """Return an interpreter of this version. Install one by uv if there is none."""
    if not VERSION.fullmatch(version):
        raise UsageError(f"Python '{version}': not a version. Give one such as {DEFAULT}.")
    _check_version(f"Python {version}", version)
    if found := _find(version):
        return found
    uv = shutil.which("uv", path=os.pathsep.join(_path_folders()) or os.devnull)
    if uv is None:
        raise SandboxError(
            f"Python {version}: not found, and uv is not installed. Install uv ('pip install uv'), "
            f"then run 'assay env python {version}' again."
        )
    announce(f"installing Python {version} by uv")
    done = subprocess.run(
        [uv, "python", "install", version], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, cwd="/",
    )  # fmt: skip
    _find.cache_clear()
    found = _find(version) if done.returncode == 0 else None
    if found is None:
        lines = (done.stderr.strip() or "uv gave no reason").splitlines()
        raise SandboxError(
            f"Python {version}: was not installed ({lines[-1].strip()}). Check the network, then "
            f"run 'assay env python {version}' again."
        )
    return found


def for_extraction(capabilities: Capabilities, environment: str = "") -> str:
    """Return the interpreter whose grammar extraction uses: that of the Python that judges.

    Where another machine or an image judges, it is one of the same version here. Without one, it
    is the default: the same on most machines.
    """
    if environment:
        return environments.find(environment).interpreter
    return capabilities.interpreter or for_version(capabilities.python)


def for_version(python: str) -> str:
    """Return an interpreter for ``cpython 3.11.7`` or ``cpython 3.11``, or else the default."""
    version = minor_of(python)
    return ((_find(version) if VERSION.fullmatch(version) else None) or choose()).path


def minor_of(python: str) -> str:
    """Return the version without the patch release: 3.11 for ``cpython 3.11.7``."""
    return ".".join(python.rpartition(" ")[2].split(".")[:2])


def require(python: str, sandbox: OwnPython, remedy: str) -> None:
    """Close a sandbox that has its own Python, and raise, if it is not what ``--python`` says."""
    capabilities = sandbox.capabilities()
    version = capabilities.python.rpartition(" ")[2]
    if python and not (VERSION.fullmatch(python) and is_version(python, version)):
        sandbox.close()
        raise SandboxError(
            f"--python {python}: the sandbox {capabilities.kind} has its own Python, {version}. "
            f"{remedy}, or omit the option."
        )


def is_version(python: str, version: str) -> bool:
    """Return whether a Python of ``version`` is what ``--python`` asks for."""
    return _parts(version)[: python.count(".") + 1] == _parts(python)


def _host() -> Interpreter:
    """Return the interpreter that runs assay, not that of its virtual environment."""
    path: str = getattr(sys, "_base_executable", "") or sys.executable
    return Interpreter(path, platform.python_version(), "assay")


def _host_can_judge() -> bool:
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return sys.implementation.name == "cpython" and not is_free_threaded


@functools.cache
def _find(version: str) -> Interpreter | None:
    if _host_can_judge() and is_version(version, _host().version):
        return _host()
    return next(_usable(_candidates(version), version), None)


def _usable(candidates: Iterator[tuple[str, str]], version: str) -> Iterator[Interpreter]:
    for source, path in candidates:
        try:
            interpreter = _ask(path, source)
        except UnusableError:
            continue
        if not version or is_version(version, interpreter.version):
            yield interpreter


def _candidates(version: str) -> Iterator[tuple[str, str]]:
    """Yield how and where interpreters may be. No version: all that are supported."""
    names = [f"python{minor_of(version)}"] if version else ["python3", "python3.*[0-9]"]
    for folder in _path_folders():
        for name in names:
            paths = glob.glob(f"{glob.escape(folder)}/{name}")
            yield from (("PATH", path) for path in sorted(paths))
    home = os.path.expanduser("~")
    data = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    uv = os.environ.get("UV_PYTHON_INSTALL_DIR") or f"{data}/uv/python"
    pyenv = os.environ.get("PYENV_ROOT") or f"{home}/.pyenv"
    minor = f"{minor_of(version)}." if version else "3."
    for source, pattern in (
        ("uv", f"{uv}/cpython-{minor}*"), ("pyenv", f"{pyenv}/versions/{minor}*"),
    ):  # fmt: skip
        for folder in sorted(_list(pattern), key=_version_in, reverse=True):
            yield source, f"{folder}/bin/python3"
    for folder in _conda_folders(home):
        yield "conda", f"{folder}/bin/python3"


def _list(pattern: str) -> list[str]:
    """Return the folders that match. A relative pattern would be one of the current folder."""
    return [path for path in glob.glob(pattern) if os.path.isdir(path)] if pattern[0] == "/" else []


def _path_folders() -> list[str]:
    """Return the folders of PATH. The current folder is never one, whoever put it there."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        here = ""
    entries = dict.fromkeys(os.environ.get("PATH", os.defpath).split(os.pathsep))
    return [entry for entry in entries if os.path.isabs(entry) and os.path.realpath(entry) != here]


def _conda_folders(home: str) -> list[str]:
    prefix, program = os.environ.get("CONDA_PREFIX", ""), os.environ.get("CONDA_EXE", "")
    folders = [prefix, os.path.dirname(os.path.dirname(program)), "/opt/conda"]
    folders += [f"{home}/{name}" for name in CONDA_FOLDERS]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        folders += Path(f"{home}/.conda/environments.txt").read_text().split("\n")
    folders = [folder for folder in folders if os.path.isabs(folder)]
    below = [path for folder in folders for path in sorted(_list(f"{folder}/envs/*"))]
    return [folder for folder in dict.fromkeys(folders + below) if os.path.isdir(folder)]


@functools.cache
def _ask(path: str, source: str) -> Interpreter:
    """Run an interpreter once, outside any project, and return what it says about itself."""
    try:
        name, version, executable, is_free_threaded = json.loads(_read_answer(path))
    except OSError as error:
        raise UnusableError(f"cannot be run ({error.strerror})") from error
    except (ValueError, TypeError) as error:
        raise UnusableError("is not an interpreter of Python 3") from error
    if name != "cpython" or is_free_threaded:
        kind = "a free-threaded Python" if name == "cpython" else name
        raise UnusableError(f"is {kind}; programs are judged by CPython")
    if _parts(version)[:2] < OLDEST:
        raise UnusableError(f"is Python {version}; programs are judged by 3.11 or later")
    return Interpreter(executable, version, source)


def _read_answer(path: str) -> bytes:
    """Return the start of what a program prints, which may never end."""
    with subprocess.Popen(
        [path, "-I", "-S", "-c", ASK], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        end = threading.Timer(ASK_S, _end, [process])
        end.start()
        try:
            return process.stdout.read(MOST_ANSWER)
        finally:
            end.cancel()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and those that it started, which may hold its output open."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _check_version(what: str, version: str) -> None:
    if _parts(version)[:2] < OLDEST:
        raise SandboxError(f"{what}: too old. Programs are judged by Python 3.11 or later.")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _version_in(folder: str) -> tuple[int, ...]:
    match = VERSION.search(os.path.basename(folder))
    return _parts(match.group()) if match else ()
