"""The Python that judges is chosen: found, asked once, seen by programs, and in every result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import assay
from assay.errors import SandboxError, UsageError
from assay.extract.workers import Extractor
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.reward import Reward
from assay.runs import RunReader
from assay.sandbox import open_sandbox
from assay.sandbox.environments import interpreters
from assay.sandbox.environments import store as environments
from assay.sandbox.environments.build import find_python
from assay.sandbox.environments.interpreters import Interpreter, choose, discover, for_extraction
from assay.sandbox.kinds.process import open_judges
from assay.types import Benchmark, Capabilities, Job, Program, Tests
from tests.conftest import Cli, write_completions
from tests.security.in_tiers import STRONGEST

VERSIONS = ("3.11", "3.12", "3.13")
HOST = f"{sys.version_info.major}.{sys.version_info.minor}"
TIERS_HERE = [STRONGEST, "landlock"]
SAYS = "import sys\ndef f():\n    return list(sys.version_info[:2])\n"
# Since Python 3.12, a replacement field may have the quotes of its string.
NEW_SYNTAX = 'def {name}(*_): return f"{{len("a")}}"\n'


@pytest.fixture(autouse=True)
def _forget() -> None:
    """Look again: a test may change where interpreters are."""
    interpreters._find.cache_clear()
    interpreters._ask.cache_clear()


def installed(version: str) -> Interpreter:
    try:
        return choose(version)
    except SandboxError as error:
        pytest.skip(f"needs Python {version}: {error}")


def other_version() -> str:
    """Return an installed version that does not run these tests."""
    for version in VERSIONS:
        if version != HOST and any(one.minor == version for one in discover()):
            return version
    pytest.skip("needs Python of two versions")


@pytest.mark.parametrize("tier", TIERS_HERE)
@pytest.mark.parametrize("version", VERSIONS)
def test_programs_are_judged_by_the_chosen_python(version: str, tier: str) -> None:
    """Tests in the program's interpreter, and in one of their own."""
    python = installed(version)
    wanted = list(map(int, version.split(".")))
    code = f"import sys\nassert f() == list(sys.version_info[:2]) == {wanted}"
    sandbox = open_sandbox("process", 1, tier, version)
    try:
        found = sandbox.capabilities()
        together, apart = Tests("f", code), Tests("f", code, integrity="separated")
        jobs = [Job("t", n, Program(SAYS, ""), tests) for n, tests in enumerate((together, apart))]
        verdicts = list(sandbox.judge(jobs))
    finally:
        sandbox.close()
    assert [v.status for v in verdicts] == ["pass", "pass"], verdicts
    assert (found.python, found.interpreter) == (f"cpython {python.version}", python.path)


def test_judge_processes_have_the_chosen_python() -> None:
    version = other_version()
    sandbox = open_judges(2, STRONGEST, 2, version)
    tests = Tests("f", f"assert f() == {list(map(int, version.split('.')))}", integrity="separated")
    try:
        jobs = [Job("t", number, Program(SAYS, ""), tests) for number in range(20)]
        statuses = [verdict.status for verdict in sandbox.judge(jobs)]
    finally:
        sandbox.close()
    assert statuses == ["pass"] * 20


@pytest.mark.parametrize("version", VERSIONS)
def test_syntax_is_that_of_the_python_that_judges(
    version: str, mini: Benchmark, tmp_path: Path
) -> None:
    """Extraction reads texts by the same grammar, whatever Python runs assay."""
    installed(version)
    problem = mini.problems[0]
    code = NEW_SYNTAX.format(name=problem.tests.entry_point)
    path = write_completions(tmp_path / "samples.jsonl", [(problem.task_id, code)])
    config = ScoreConfig(
        "mini", tmp_path / "results", samples_file=str(path), partial=True, python=version
    )
    result = score(config, Silent())
    (verdict,) = RunReader(result.path.with_suffix("")).verdicts.values()
    assert verdict.status == "fail"
    assert verdict.reason == ("syntax" if version == "3.11" else "wrong-answer"), verdict
    assert result.protocol.python == f"cpython {version}"
    environment = json.loads(result.path.read_text())["environment"]
    assert environment["sandbox"]["interpreter"] == choose(version).path
    assert environment["sandbox"]["python"] == f"cpython {choose(version).version}"


@pytest.mark.parametrize("version", VERSIONS)
def test_extraction_gives_the_same_program_for_one_python(version: str, mini: Benchmark) -> None:
    """The first block is the answer only where it is Python; before 3.12 it is not."""
    python = installed(version)
    problem = mini.problems[0]
    name = problem.tests.entry_point
    text = (
        f"```python\n{NEW_SYNTAX.format(name=name)}```\nOr:\n"
        f"```python\ndef {name}(*_):\n    return 1\n```\n"
    )
    requests = [(0, assay.extract.workers.ExtractionRequest(text, problem, "chat"))]
    with Extractor(1, interpreter=python.path) as extractor:
        ((_, found),) = extractor.in_order(requests)
    assert ("return 1" in found.program.code) == (version == "3.11")


def test_the_api_and_rewards_take_a_python(mini: Benchmark) -> None:
    version = other_version()
    problem = mini.problems[0]
    wrong = tuple(map(int, version.split(".")))
    code = f"import sys\nassert sys.version_info[:2] != {wrong}\n{problem.reference}"
    fails = [(problem.task_id, code)]
    (there,) = assay.judge(fails, mini, workers=1, python=version)
    (here,) = assay.judge(fails, mini, workers=1, python=HOST)
    assert (there.status, here.status) == ("fail", "pass")
    reward = Reward(benchmark="mini", workers=1, python=version)
    try:
        (given,) = reward.score([problem.task_id], [code])
    finally:
        reward.close()
    assert given.value == 0


def test_the_default_is_one_version_and_else_that_of_assay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = other_version()
    monkeypatch.setattr(interpreters, "DEFAULT", version)
    assert (choose().minor, choose().is_chosen) == (version, False)
    monkeypatch.setattr(interpreters, "DEFAULT", "3.99")
    assert (choose().minor, choose().source) == (HOST, "assay")


def test_a_default_that_is_not_found_is_said(
    monkeypatch: pytest.MonkeyPatch, mini: Benchmark, tmp_path: Path, assay: Cli
) -> None:
    problem = mini.problems[0]
    path = write_completions(tmp_path / "s.jsonl", [(problem.task_id, problem.reference)])
    for module in ("assay.sandbox.environments.interpreters", "assay.pipeline.judging"):
        monkeypatch.setattr(f"{module}.DEFAULT", "3.99")
    arguments = ("score", str(path), "--benchmark", "mini", "--partial")
    line = "Python 3.99, by which most results are judged, was not found. Install it with"
    assert line in assay(*arguments).stderr
    assert line not in assay(*arguments, "--python", HOST).stderr


def test_patch_releases_can_be_chosen_too() -> None:
    version = choose(HOST).version
    assert choose(version) == choose(HOST)
    with pytest.raises(SandboxError, match=r"^--python 3.11.99: not found on PATH"):
        choose("3.11.99")


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("3.9", r"^--python 3.9: too old. Programs are judged by Python 3.11 or later.$"),
        ("2.7", r"^--python 2.7: too old"),
        ("3.99", r"^--python 3.99: not found on PATH, by uv, pyenv or conda. Run 'assay env"),
        ("python3", r"^--python python3: neither a version such as 3.11 nor a path"),
        ("/bin/sh", r"^--python /bin/sh: is not an interpreter of Python 3"),
        ("/nothing/python3", r"^--python /nothing/python3: cannot be run \(No such file"),
        ("/etc", r"^--python /etc: cannot be run"),
    ],
)
def test_what_is_not_a_supported_python_is_refused(python: str, message: str) -> None:
    with pytest.raises((SandboxError, UsageError), match=message):
        choose(python)


def test_a_program_that_prints_without_end_is_refused_at_once(tmp_path: Path) -> None:
    """Without a limit, all of its output is kept in memory until the time limit."""
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nyes\n")
    endless.chmod(0o755)
    start = time.monotonic()
    with pytest.raises(SandboxError, match="is not an interpreter of Python 3"):
        choose(str(endless))
    assert time.monotonic() - start < 10


def make_fake(path: Path, answer: object) -> Path:
    """Write a program that answers as an interpreter would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (["pypy", "3.11.9", "/x", False], "is pypy; programs are judged by CPython"),
        (["cpython", "3.13.1", "/x", True], "is a free-threaded Python; programs are judged"),
        (["cpython", "3.9.18", "/x", False], "is Python 3.9.18; programs are judged by 3.11"),
    ],
)
def test_an_interpreter_that_cannot_judge_says_why(
    answer: object, message: str, tmp_path: Path
) -> None:
    path = make_fake(tmp_path / "python3", answer)
    with pytest.raises(SandboxError, match=message):
        choose(str(path))


def test_a_virtual_environment_leads_to_its_interpreter(tmp_path: Path) -> None:
    """Its packages are not for programs, so it is another name of the same interpreter."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    for path in (folder, folder / "bin" / "python"):
        found = choose(str(path))
        assert os.path.realpath(found.path) == os.path.realpath(sys.executable)
        assert not found.path.startswith(str(tmp_path))


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without interpreters, and a PATH without any."""
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("CONDA_EXE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


FAKE = ["cpython", "3.98.4", "/opt/real/python3.98", False]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("PATH", "bin/python3.98"),
        ("uv", ".local/share/uv/python/cpython-3.98.4-linux-x86_64-gnu/bin/python3"),
        ("pyenv", ".pyenv/versions/3.98.4/bin/python3"),
        ("conda", "miniconda3/envs/old/bin/python3"),
        ("conda", ".conda/envs/other/bin/python3"),
    ],
)
def test_interpreters_are_found_where_tools_put_them(
    source: str, place: str, bare_home: Path
) -> None:
    make_fake(bare_home / place, FAKE)
    found = choose("3.98")
    assert (found.path, found.version, found.source) == ("/opt/real/python3.98", "3.98.4", source)
    assert found in [assay_chosen(one) for one in discover()]


def assay_chosen(one: Interpreter) -> Interpreter:
    return Interpreter(one.path, one.version, one.source, is_chosen=True)


def test_the_newest_patch_release_is_taken(bare_home: Path) -> None:
    for patch in ("4", "10", "9"):
        path = bare_home / f".pyenv/versions/3.98.{patch}/bin/python3"
        make_fake(path, ["cpython", f"3.98.{patch}", str(path), False])
    assert choose("3.98").version == "3.98.10"


@pytest.mark.parametrize("entry", ["", ".", "sub", "{here}"])
def test_the_current_folder_has_no_interpreter(
    entry: str, bare_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a checkout or an archive could bring the Python that judges it."""
    here = bare_home / "checkout"
    for folder in (here, here / "sub", here / "~/.pyenv/versions/3.98.4/bin"):
        for name in ("python3.98", "python3"):
            make_fake(folder / name, FAKE)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", entry.format(here=here))
    monkeypatch.setenv("PYENV_ROOT", "~/.pyenv")
    with pytest.raises(SandboxError, match="not found"):
        choose("3.98")


def test_a_shim_of_pyenv_is_not_an_interpreter(
    bare_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs what the settings of the folder say, and fails if they name another version."""
    shim = bare_home / ".pyenv/shims/python3.98"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.98: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    make_fake(bare_home / ".pyenv/versions/3.98.4/bin/python3", FAKE)
    assert choose("3.98").path == "/opt/real/python3.98"
    assert choose(str(shim)).path == "/opt/real/python3.98"


def test_a_missing_version_is_installed_by_uv(bare_home: Path, assay: Cli) -> None:
    """The tool is a script here: it is called as uv is, and puts Python where uv does."""
    target = bare_home / ".local/share/uv/python/cpython-3.98.4-linux-x86_64-gnu/bin"
    made = make_fake(bare_home / "made", FAKE)
    tool = bare_home / "bin/uv"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\n[ "$*" = "python install 3.98" ] || exit 2\n'
        f"/bin/mkdir -p {target}; /bin/cp {made} {target}/python3\n"
    )
    tool.chmod(0o755)
    done = assay("env", "python", "3.98")
    assert done.stdout == "Python 3.98.4 is ready: /opt/real/python3.98\n", done.stderr
    tool.write_text("#!/bin/sh\necho 'error: no network' >&2\nexit 1\n")
    failed = assay("env", "python", "3.97")
    assert failed.returncode == 2
    assert "Python 3.97: was not installed (error: no network). Check the network" in failed.stderr
    tool.unlink()
    assert "uv is not installed. Install uv" in assay("env", "python", "3.97").stderr


def test_interpreters_are_listed(assay: Cli) -> None:
    lines = assay("env", "python").stdout.splitlines()
    assert lines[0].split() == ["Python", "found", "by", "path"]
    (default,) = [line for line in lines if line.endswith("default")]
    assert choose().version in default
    listed = json.loads(assay("env", "python", "--json").stdout)
    assert [one["version"] for one in listed] == [one.version for one in discover()]


class OwnPython:
    """A sandbox with its own Python."""

    def __init__(self, python: str) -> None:
        self.found = Capabilities("docker", "container", python)
        self.closed = False

    def capabilities(self) -> Capabilities:
        return self.found

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("python", ["", "3.11", "3.11.2"])
def test_a_sandbox_with_its_own_python_accepts_its_version(python: str) -> None:
    sandbox = OwnPython("cpython 3.11.2")
    interpreters.require(python, sandbox, "Build an image with the other version")
    assert not sandbox.closed


@pytest.mark.parametrize("python", ["3.12", "3.11.7", "3.1", "/usr/bin/python3"])
def test_a_sandbox_with_its_own_python_refuses_another(python: str) -> None:
    sandbox = OwnPython("cpython 3.11.2")
    with pytest.raises(
        SandboxError,
        match=f"^--python {python}: the sandbox docker has its own Python, 3.11.2. Build an image "
        "with the other version, or omit the option.$",
    ):
        interpreters.require(python, sandbox, "Build an image with the other version")
    assert sandbox.closed


def test_where_another_machine_judges_its_version_extracts() -> None:
    version = other_version()
    elsewhere = Capabilities("remote", "root", f"cpython {version}.99")
    assert for_extraction(elsewhere) == choose(version).path
    assert for_extraction(Capabilities("wasm", "wasm", "cpython 3.99.1")) == choose().path


def test_packages_are_for_their_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter of an environment is found as any other; another one is refused."""
    version = other_version()
    recipe = environments.RECIPES["canitedit"]
    own = environments.Recipe(recipe.name, recipe.lock, version)
    assert find_python(own) == choose(version).path
    monkeypatch.setitem(environments.RECIPES, "canitedit", own)
    with pytest.raises(
        SandboxError,
        match=f"its packages are for Python {version}, not {HOST}. Omit --python, or give "
        f"--python {version}.",
    ):
        environments.find("canitedit", python=HOST)
    missing = environments.Recipe(recipe.name, recipe.lock, "3.99")
    with pytest.raises(SandboxError, match="needs Python 3.99, .* 'assay env python 3.99' first"):
        find_python(missing)


def test_commands_say_which_python_judges(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    problem = mini.problems[0]
    path = write_completions(tmp_path / "s.jsonl", [(problem.task_id, problem.reference)])
    version = other_version()
    arguments = ("score", str(path), "--benchmark", "mini", "--partial")
    for python, found in (((), choose()), (("--python", version), choose(version))):
        done = assay(*arguments, *python)
        line = f"programs are judged by Python {found.version}, {found.path}"
        assert done.stderr.count(line) == 1, done.stderr
    assert f"Python              {found.version}, {found.path}" in (
        assay("sandbox", "doctor", "--python", version).stdout
    )
