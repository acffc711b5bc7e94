"""What many tests need: the data folder, the command line, files of completions."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from assay import benchmarks
from assay.errors import DataError
from assay.models import Model, open_model
from assay.sandbox.container.image import BASE, build_image
from assay.types import Benchmark
from tests.in_process import run_command
from tests.sandbox.container_engine import OwnEngine, running_engine
from tests.skips import SHARED_DATA, SkipChecker

# Random examples per property: a few by default, all with --hypothesis-profile=full (test-all).
# No deadline and no check of how long examples take to make: other load must not fail a test.
TIMED = [HealthCheck.too_slow]
settings.register_profile("full", deadline=None, suppress_health_check=TIMED)
settings.register_profile("default-tier", settings.get_profile("full"), max_examples=25)
settings.load_profile("default-tier")
# As engines do: threads that wait must not take the cores from the other tests.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="store_true",
        help="fail on every skip that this machine could have run (tests/skips.py has the rules)",
    )
    parser.addoption("--screenshots", metavar="DIR", help="keep browser tests' pictures here")


COSTLY = ("docker", "wasm", "parity", "browser")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep tests that share something costly on one worker, the others by file (loadgroup)."""
    shared = [name for name in COSTLY if item.get_closest_marker(name)]
    # A cluster is found by everybody on the machine: by the tests that there is none, too.
    shared += ["ray"] if item.path.parent.name == "cluster" else []
    item.add_marker(pytest.mark.xdist_group(shared[0] if shared else item.path.stem))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop if xdist does not know the groups: it says nothing where it cannot apply them."""
    grouped = getattr(session.config.option, "loadgroup", False)
    if grouped and any("@" not in item.nodeid for item in session.items):
        raise pytest.UsageError("--dist loadgroup: this pytest and this xdist do not group tests")


ALL_TORCH = re.compile(r"^pytestmark = [^(]*\bmark\.torch\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of torch's tests when none is selected: importing torch takes seconds."""
    wanted = "not torch" not in config.option.markexpr
    named = any(collection_path.name in argument for argument in config.args)
    if wanted or named or collection_path.suffix != ".py":
        return None
    return True if ALL_TORCH.search(collection_path.read_text()) else None


@contextlib.contextmanager
def skip_without_data() -> Iterator[None]:
    """Skip a test whose benchmark cannot be had, if the development data is not there."""
    try:
        yield
    except DataError as error:
        if SHARED_DATA.is_dir():
            raise
        pytest.skip(f"the data of this test is not here: {error}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    with skip_without_data():
        return (yield)


@contextlib.contextmanager
def without_coverage(item: pytest.Item) -> Iterator[None]:
    """Do not trace a test that is marked ``no_cover``.

    In a worker of xdist, coverage is started twice, and pytest-cov pauses only one of them.
    """
    tracer = sys.gettrace()
    if item.get_closest_marker("no_cover"):
        sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    with skip_without_data(), without_coverage(item):
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--require") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipChecker(), "skip-checker")


@pytest.fixture(autouse=True, scope="session")
def _environment() -> None:
    """No user setting may change a test; downloads are shared with the user's cache."""
    for name in [n for n in os.environ if n.startswith(("ASSAY_", "APR_", "HF_"))]:
        if name != "ASSAY_CACHE_DIR":
            del os.environ[name]
    os.environ["ASSAY_NO_CACHE"] = "1"  # the cache has tests of its own
    # pytest's own workers fill the cores: a second one of the sandbox costs 0.4 CPU s per command.
    os.environ["ASSAY_WORKERS"] = "1"
    if SHARED_DATA.is_dir():
        os.environ["ASSAY_DATA_DIR"] = str(SHARED_DATA)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the development data folder ../shared/data, or ASSAY_DATA_DIR")
    return SHARED_DATA


@pytest.fixture(scope="session")
def mini() -> Benchmark:
    return benchmarks.load("mini")


@pytest.fixture(scope="session")
def humaneval(_environment: None) -> Benchmark:
    return benchmarks.load("humaneval")


@pytest.fixture(scope="session")
def default_model(_environment: None) -> Iterator[Model]:
    """Load the default model once for all tests that only ask it for something."""
    model = open_model("default")
    with model.keep_loaded():
        yield model
    model.close()


@pytest.fixture(scope="session")
def engine(_environment: None) -> Iterator[OwnEngine | None]:
    """Start a container runtime, with an image of this machine's Python; None if one ran before."""
    with running_engine() as found:
        build_image(BASE, Path("host"), lambda _: None)
        yield found


Cli = Callable[..., subprocess.CompletedProcess[str]]
ASSAY = (sys.executable, "-m", "assay")


@pytest.fixture
def assay(tmp_path: Path) -> Cli:
    """Return a function that runs the command line in this process, in an empty folder.

    Starting an interpreter costs more than most commands do; ``real_assay`` does start one.
    """

    def run(
        *arguments: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = run_command(*arguments, folder=tmp_path, seconds=300, env=env)
        return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)

    return run


@pytest.fixture
def real_assay(tmp_path: Path) -> Cli:
    """Return a function that starts the real command, as a user does, in an empty folder."""

    def run(
        *arguments: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ASSAY, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def write_completions(
    path: Path, texts: Iterable[tuple[str, str]], field: str = "solution"
) -> Path:
    lines = (json.dumps({"task_id": task_id, field: text}) + "\n" for task_id, text in texts)
    path.write_text("".join(lines))
    return path


def references(benchmark: Benchmark) -> list[tuple[str, str]]:
    return [(p.task_id, p.reference) for p in benchmark.problems]


def broken(benchmark: Benchmark) -> list[tuple[str, str]]:
    return [
        (p.task_id, f"def {p.tests.entry_point}(*a, **k):\n    return object()\n")
        for p in benchmark.problems
    ]


@pytest.fixture
def allow_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let so many threads start, then no more."""

    def allow(count: int) -> None:
        left = iter(range(count))
        start = threading.Thread.start

        def limited(thread: threading.Thread) -> None:
            if next(left, None) is None:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)

    return allow
