"""Build sdist and wheel, check what they hold, and evaluate with the wheel outside the repository.

Run by ``make release-check`` and by the release workflow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# In the repository for those who work on it, of no use to those who install from an sdist.
NOT_RELEASED = (".gitignore",)


def tracked_files() -> set[str]:
    """Return the files that git knows and that exist, links left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return {
        name
        for name in listed.stdout.split("\0")
        if name and (ROOT / name).is_file() and not (ROOT / name).is_symlink()
    }


def build() -> tuple[Path, Path]:
    """Build both and return their paths, sdist first."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    return sdist, wheel


def missing_from_sdist(sdist: Path, files: set[str]) -> set[str]:
    """Return the tracked files that the sdist lacks."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    return {name for name in files - held if Path(name).name not in NOT_RELEASED}


def missing_from_wheel(wheel: Path, files: set[str]) -> set[str]:
    """Return the files of the package and the contracts that the wheel lacks."""
    wanted = {name.removeprefix("src/") for name in files if name.startswith("src/assay/")}
    wanted |= {f"assay/{name}" for name in files if name.startswith("contracts/")}
    with zipfile.ZipFile(wheel) as archive:
        return wanted - set(archive.namelist())


def evaluate_elsewhere(wheel: Path, folder: Path) -> float:
    """Install the wheel into an empty environment and return the default model's mini score."""
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / "bin"
    install = [binaries / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, f"assay-eval[gguf] @ {wheel.as_uri()}"], cwd=folder, check=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for arguments in (["--version"], ["data", "list"], ["eval", "mini"]):
        subprocess.run([binaries / "assay", *arguments], cwd=folder, env=clean, check=True)
    (results,) = (folder / "results").glob("mini_*.json")
    found = json.loads(results.read_text())["results"]
    if found["completed"] != 20 or found["invalid"]:
        sys.exit(f"release-check: {found['completed']} of 20 problems were judged")
    return float(found["pass_at_1"])


def main() -> None:
    """Check the release; exit with an error at the first thing that is wrong."""
    sdist, wheel = build()
    files = tracked_files()
    for path, missing in (
        (sdist, missing_from_sdist(sdist, files)),
        (wheel, missing_from_wheel(wheel, files)),
    ):
        if missing:
            sys.exit(f"release-check: {path.name} lacks {', '.join(sorted(missing))}")
    with tempfile.TemporaryDirectory(prefix="assay-release-") as folder:
        score = evaluate_elsewhere(wheel, Path(folder))
    print(f"release-check: {wheel.name} works outside the repository, mini pass@1 {score:.1%}")


if __name__ == "__main__":
    main()
