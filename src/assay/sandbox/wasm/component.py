"""Build CPython as a WebAssembly component once, and cache it with its digest."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.datasets import cache_dir, file_sha256, read_sealed, write_sealed
from assay.errors import SandboxError, install_hint
from assay.sandbox.environments import interpreters

PACKAGES = ("wasmtime", "componentize-py")
HERE = Path(__file__).parent
GUEST, JUDGING = HERE / "guest", HERE.parent / "inside" / "judging"
# What the guest shares with the fork server: nothing that depends on a kernel.
SHARED = (
    "__init__", "digests", "foresee", "judge", "messages", "plain", "scripts", "trial", "wire",
)  # fmt: skip
BUILD_S = 900.0
PURPOSE = "wasm component"  # of the seal on its record
SCRIPT = "import sys; from componentize_py import script; sys.exit(script())"
STACK_BYTES = (2 << 20) - (1 << 16)  # wasmtime allows no more


@dataclass(frozen=True, slots=True)
class GuestLacks:
    """The names of this Python's standard library that the guest lacks."""

    modules: tuple[str, ...]
    names: dict[str, tuple[str, ...]]  # by module
    encodings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Build:
    """A component and what it was built with.

    Two builds are not identical to the byte (componentize-py issue 247). Even the order of sets of
    strings differs between builds, so results name their build.
    """

    sha256: dict[str, str]  # by file
    packages: dict[str, str]  # and their versions
    python: str  # the guest's
    lacks: GuestLacks


def open_engine() -> Any:
    """Return a wasmtime engine, configured alike for compiling and for running."""
    import wasmtime

    config = wasmtime.Config()
    config.epoch_interruption = True
    config.max_wasm_stack = STACK_BYTES
    return wasmtime.Engine(config)


def compiled(note: Callable[[str], None]) -> Path:
    """Return the file that wasmtime loads. Build it if it is missing or was changed."""
    _need_packages()
    folder = cache_dir() / "wasm" / _digest_of_inputs()[:16]
    machine_code, record = folder / "component.cwasm", folder / "component.json"
    if not _is_as_recorded(machine_code, record):
        folder.mkdir(parents=True, exist_ok=True)
        _build(folder, note)
    return machine_code


def about(machine_code: Path) -> Build:
    """Return what is recorded about an existing component."""
    build = _read_record(machine_code.with_suffix(".json"))
    if build is None:
        raise SandboxError(f"{machine_code}: its record is missing. Run the same command again.")
    return build


def _build(folder: Path, note: Callable[[str], None]) -> None:
    from wasmtime import component

    note("building CPython for WebAssembly (once, about half a minute)")
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        wasm = Path(temporary, "component.wasm")
        _componentize(Path(temporary), wasm)
        note("compiling it for this machine")
        machine_code = Path(temporary, "component.cwasm")
        machine_code.write_bytes(component.Component(open_engine(), wasm.read_bytes()).serialize())
        record = Path(temporary, "component.json")
        names = (wasm.name, machine_code.name)
        digests = {name: file_sha256(Path(temporary, name)) for name in names}
        answer = json.loads(_ask_guest(machine_code))
        build = codec.from_json(Build, {"sha256": digests, "packages": _versions(), **answer})
        write_sealed(record, PURPOSE, codec.pretty(build).encode())
        for name in (*names, record.name):  # the record last: it says that all is there
            os.replace(Path(temporary, name), folder / name)


def _ask_guest(machine_code: Path) -> str:
    worker = [sys.executable, "-m", "assay.sandbox.wasm.worker", str(machine_code), "about"]
    done = subprocess.run(worker, capture_output=True, text=True, check=True, timeout=BUILD_S)
    return done.stdout


def _componentize(folder: Path, target: Path) -> None:
    code = folder / "code"
    shutil.copytree(GUEST, code, ignore=shutil.ignore_patterns("__*"))
    (code / "inside" / "judging").mkdir(parents=True)
    (code / "inside" / "__init__.py").touch()
    for name in SHARED:
        shutil.copy(JUDGING / f"{name}.py", code / "inside" / "judging")
    _write_host_names(code / "host_names.py")
    done = subprocess.run(
        [
            sys.executable, "-c", SCRIPT, "--wit-path", "world.wit",
            "--world", "judging", "componentize", "app", "--output", str(target),
        ],
        cwd=code, capture_output=True, text=True, timeout=BUILD_S, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no reason"]
        raise SandboxError(f"componentize-py: failed ({last[0]}). Install it again.")


def _write_host_names(target: Path) -> None:
    """Write, in a separate process, the standard library's names that a guest may lack."""
    python = interpreters.choose().path
    script = [python, "-I", "-S", "-W", "ignore", str(HERE / "host_names.py"), str(target)]
    subprocess.run(
        script, capture_output=True, stdin=subprocess.DEVNULL, check=True, timeout=BUILD_S
    )


def _need_packages() -> None:
    try:
        _versions()
    except importlib.metadata.PackageNotFoundError as error:
        raise SandboxError(
            f"wasm sandbox: needs {error.name}. Install it with {install_hint('wasm')}."
        ) from error


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def _digest_of_inputs() -> str:
    here = [
        platform.machine(),
        sys.platform,
        interpreters.choose().minor,
    ]  # the guest gets this Python's names
    digest = hashlib.sha256(json.dumps([_versions(), STACK_BYTES, here]).encode())
    sources = [JUDGING / f"{name}.py" for name in SHARED]
    guest = [GUEST / name for name in ("app.py", "imports.py", "lacks.py", "world.wit")]
    for path in (*sources, *guest, HERE / "host_names.py"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_as_recorded(path: Path, record: Path) -> bool:
    """Return whether a file has its recorded digest. Machine code is checked each time."""
    build = _read_record(record)
    try:
        return build is not None and build.sha256[path.name] == file_sha256(path)
    except (OSError, KeyError):
        return False


def _read_record(record: Path) -> Build | None:
    """Return the record of this user's build, or None."""
    try:
        data = read_sealed(record, PURPOSE)
        return codec.from_json(Build, json.loads(data)) if data else None
    except (OSError, ValueError):
        return None
