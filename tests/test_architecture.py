"""The rules of docs/architecture.md: who may import whom, and that files and folders stay small."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "assay"
# Imports go downwards. What is in no layer is the foundation, which every package may import.
LAYERS = (
    {"__main__"},
    {"cli"},
    {"reward"},
    {"api"},
    {"pipeline", "quality", "report", "serve", "cluster"},
    {"judging"},
    {"runs", "benchmarks", "models", "sandbox", "extract", "prompts", "selection", "peers"},
    {"formats", "datasets", "scoring"},
)
# Within a layer only these.
SIDEWAYS = {
    ("report", "pipeline"), ("serve", "pipeline"), ("cluster", "pipeline"),
    ("peers", "sandbox"), ("peers", "benchmarks"),
    ("formats", "datasets"),
}  # fmt: skip
# Folders that are a package's own business: nobody else imports from them.
PRIVATE = (
    "models.engines", "models.workers", "sandbox.kinds", "sandbox.host", "sandbox.inside",
    "sandbox.judges", "sandbox.container.worker", "sandbox.container.runtime", "sandbox.wasm",
    "extract.rules", "benchmarks.support",
)  # fmt: skip
# Folders of plug-ins: adding one is adding a file (or a folder), however many there are.
PLUG_INS = (
    "benchmarks", "prompts", "formats/kinds", "models/engines", "sandbox/kinds", "extract/rules",
    "quality/qa/checks", "selection", "report/leaderboard/formats",
)  # fmt: skip
# Modules of less than LEAST_LINES that are neither a plug-in, a command nor a door, and why.
SMALL = {
    "__main__": "a door: python -m assay",
    "progress": "the domain: the only way to report progress",
    "data.failures": "everything from judging to reports makes these words",
    "data.printable": "whatever prints needs it, and nothing else",
    "judging.job": "the only place that builds jobs",
    "peers._confined.messages": "the only file of its folder that the harness imports",
    "pipeline.site": "a cluster implements it, without the rest of the pipeline",
    "quality.decision": "contracts prove it",
    "quality.check.jinja": "only the process that tries a template loads jinja2",
    "sandbox.stages": "a door: what a cluster needs to run stages",
    "sandbox.wasm.host_names": "run as a process of its own",
}
LEAST_LINES, MOST_NAMESAKES = 60, 3
# Class names that occur more than once: how often, and why. Isolated code (sandbox/inside and
# peers/_confined) shares no process with the rest of assay, and keeps its short names.
SAME_NAMES = {
    "Channel": (3, "isolated: a judge's view of calls, that of runs, and what the oracle provides"),
    "Orders": (2, "isolated: to the process of one program, and to the process of one case"),
    "Report": (2, "isolated, in sandbox/inside and in peers/_confined"),
    "Settings": (2, "isolated, in sandbox/inside and in peers/_confined"),
    "Watch": (2, "isolated, in sandbox/inside and in peers/_confined"),
    "Limits": (2, "public, and isolated: the limits as the sandbox applies them"),
    "Result": (2, "public, and isolated: what tests say about a program"),
    "Score": (2, "public in assay.reward, and a message whose name travels to an engine's process"),
}
# Where threads and child processes are started. Others use these (``assay.work`` first).
STARTERS = ("work", "sandbox.host", "models.workers")
STARTS = {"threading.Thread", "threading.Timer", "subprocess.Popen", "multiprocessing.Process"}
STARTS |= {f"concurrent.futures.{kind}PoolExecutor" for kind in ("Thread", "Process")}
# Files that still start their own, as of 2026-11-18, and why.
OWN_STARTS = {
    "models.engines.apr_cli.apr_model": "a command of others, which does not speak our messages",
    "models.engines.openai.client": "a timer per request, which closes its connection",
    "models.engines.torch.weights": "copies of weights to GPUs, inside the engine's process",
    "sandbox.container.worker": "a command of a container runtime",
    "sandbox.environments.build": "a command of others, whose output is limited",
    "sandbox.environments.interpreters": "a question to another Python, with a time limit",
    "sandbox.inside.serving.container": "isolated: inside a container there is no assay",
    "sandbox.kinds.wasm": "the process of a WebAssembly component: to move to work.process",
    "sandbox.selftest.battery": "sockets that programs must not reach",
    "serve.service": "two executors that parse requests",
}
MOST_FILES, MOST_LINES, MOST_LINES_OF_A_DOOR = 15, 400, 60
FILES = sorted(path for path in SOURCE.rglob("*.py") if not path.is_symlink())
FOLDERS = sorted({path.parent for path in FILES})
TESTS = Path(__file__).parent
# Tests of no one package: attacks, other harnesses, whole commands, pages, random input, documents.
ACROSS = {"security", "parity", "e2e", "browser", "fuzz", "docs"}


def layer(package: str) -> int:
    """Return the number of a package's layer; the foundation's is the highest."""
    return next((i for i, names in enumerate(LAYERS) if package in names), len(LAYERS))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


@functools.cache
def imported(path: Path) -> tuple[str, ...]:
    """Return the names, without ``assay``, that a file imports from assay."""
    return tuple(find_imports(path.read_text()))


def find_imports(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "assay":
            for alias in node.names:
                yield f"{node.module}.{alias.name}".partition(".")[2]
        elif isinstance(node, ast.Import):
            names = (alias.name.partition(".") for alias in node.names)
            yield from (rest for first, _, rest in names if first == "assay" and rest)


def is_a_package_or_module(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()


def exists(name: str) -> bool:
    """Report whether a name, without ``assay``, is a module or occurs in the module before it."""
    place, last = SOURCE.joinpath(*name.split(".")[:-1]), name.rpartition(".")[2]
    if (place / last / "__init__.py").exists() or (place / f"{last}.py").exists():
        return True
    door = place / "__init__.py"  # a folder without one is what a moved package left behind
    module = door if door.exists() else place.with_suffix(".py")
    return module.exists() and re.search(rf"\b{last}\b", module.read_text()) is not None


def goes_downwards(here: str, name: str) -> bool:
    """Report whether the package ``here`` may import ``name`` by the layers."""
    there = name.partition(".")[0]
    if there == here or here == "__init__" or not is_a_package_or_module(there):
        return True  # a name of the package itself, such as __version__
    down = layer(here) < layer(there) or layer(there) == len(LAYERS)
    return down or (here, there) in SIDEWAYS


def reaches_into(here: str, name: str) -> bool:
    """Report whether ``name`` is the business of a package other than ``here``."""
    there, _, rest = name.partition(".")
    if there == here:
        return False
    hidden = any(part.startswith("_") and part != "__version__" for part in rest.split("."))
    return hidden or any(f"{name}.".startswith(f"{folder}.") for folder in PRIVATE)


def most_lines(path: Path) -> int:
    if path.name == "types.py":
        return 330
    return MOST_LINES_OF_A_DOOR if path.name == "__init__.py" else MOST_LINES


# One test for all files: with one per file, pytest's own work would be most of the time.
def test_imports_go_downwards() -> None:
    upwards = [
        f"{name_of(path)} imports {name}"
        for path in FILES
        for name in imported(path)
        if not goes_downwards(name_of(path).partition(".")[0], name)
    ]
    assert upwards == []


def test_nobody_reaches_into_another_package() -> None:
    reaching = [
        f"{name_of(path)} reaches into {name}"
        for path in FILES
        for name in imported(path)
        if reaches_into(name_of(path).partition(".")[0], name)
    ]
    assert reaching == []


def test_files_fit_a_readers_head() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in FILES}
    assert {name_of(p): count for p, count in lines.items() if count > most_lines(p)} == {}


def is_one_of_many(path: Path) -> bool:
    """Report whether a file is a plug-in, a command or a door, which may be small."""
    folder = str(path.parent.relative_to(SOURCE))
    return path.name == "__init__.py" or folder in {*PLUG_INS, "cli"}


def test_small_modules_have_a_reason() -> None:
    """Small files are read one by one, and a tenth of each is imports."""
    small = {
        name_of(path)
        for path in FILES
        if len(path.read_text().splitlines()) < LEAST_LINES and not is_one_of_many(path)
    }
    assert small - SMALL.keys() == set(), "join them with what they change together with"
    assert SMALL.keys() - small == set(), "are no longer small: change the list"


def test_a_file_name_says_which_file() -> None:
    counts = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert {name: count for name, count in counts.items() if count > MOST_NAMESAKES} == {}


def test_folders_can_be_looked_through() -> None:
    counts = {str(f.relative_to(SOURCE)): len(list(f.glob("*.py"))) for f in FOLDERS}
    crowded = {name: count for name, count in counts.items() if count > MOST_FILES}
    assert set(crowded) <= {*PLUG_INS, "cli"}, crowded


def classes_of(path: Path) -> list[str]:
    return [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]


def test_a_class_name_occurs_once() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for name in classes_of(path):
            homes.setdefault(name, []).append(name_of(path))
    allowed = {name: count for name, (count, _) in SAME_NAMES.items()}
    wrong = {name: places for name, places in homes.items() if len(places) > allowed.get(name, 1)}
    assert wrong == {}
    fewer = {name for name, count in allowed.items() if len(homes.get(name, ())) < count}
    assert fewer == set(), "occur less often now: change the list"


def test_a_folder_is_an_argument_and_never_ambient_state() -> None:
    assert [path for path in FILES if "contextvars" in path.read_text()] == []


def test_pipeline_names_no_benchmark_model_or_sandbox() -> None:
    text = "".join(path.read_text().lower() for path in (SOURCE / "pipeline").rglob("*.py"))
    for name in ("humaneval", "mbpp", "gguf", "llama", "docker", "wasm"):
        assert name not in text


def calls_of(path: Path) -> set[str]:
    """Return the names that a file calls."""
    calls = (
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    )
    return {func.id for func in calls if isinstance(func, ast.Name)}


def test_jobs_that_judge_are_built_in_one_place() -> None:
    """A sandbox builds its own controls and attacks, and copies of jobs in other processes."""
    builders = [name_of(path) for path in FILES if "Job" in calls_of(path)]
    assert {name for name in builders if not name.startswith("sandbox.")} == {"judging.job"}


def starts_of(path: Path) -> set[str]:
    """Return which of ``STARTS`` a file calls, by their module or by their imported name."""
    tree = ast.parse(path.read_text())
    named = {name.rpartition(".")[2]: name for name in STARTS}
    imported_names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {named.get(func.attr, "") for func in calls if isinstance(func, ast.Attribute)}
    called |= {imported_names.get(func.id, "") for func in calls if isinstance(func, ast.Name)}
    return called & STARTS


def test_threads_and_child_processes_are_started_in_few_places() -> None:
    starting = {name_of(path) for path in FILES if starts_of(path)}
    others = {
        name for name in starting if not f"{name}.".startswith(tuple(f"{p}." for p in STARTERS))
    }
    assert others - set(OWN_STARTS) == set(), "use assay.work"
    assert set(OWN_STARTS) - others == set(), "start nothing any more: change the list"


def test_one_place_decides_what_is_truncated() -> None:
    deciders = [name_of(p) for p in FILES if 'reason="truncated"' in p.read_text()]
    assert deciders == ["judging.attempts"]


def test_scripts_and_documents_import_what_exists() -> None:
    """Type checkers and other tests see neither."""
    root = SOURCE.parents[1]
    folders = ("benchmarks", "docs", "examples", ".ci")
    scripts = {path: path.read_text() for f in folders for path in (root / f).rglob("*.py")}
    blocks = [
        (path, code)
        for path in (root / "docs").rglob("*.md")
        for code in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
        if "import assay" in code or "from assay" in code  # others may be a model's mistakes
    ]
    assert scripts
    assert blocks
    missing = [
        (path.relative_to(root), name)
        for path, code in (*scripts.items(), *blocks)
        for name in find_imports(code)
        if not exists(name)
    ]
    assert missing == []


def test_tests_mirror_the_source() -> None:
    """Tests of a file at the top of src, and of several packages, are at the top of tests."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    folders = {path.parent.name for path in TESTS.glob("*/__init__.py")}
    assert folders - ACROSS == packages
    assert folders >= ACROSS


def test_the_docs_name_files_that_exist() -> None:
    """Both the tree of packages and the table of changes: moving a file makes them wrong."""
    text = (TESTS.parent / "docs" / "architecture.md").read_text()
    table = text[text.index("## Where do I change") : text.index("## Design decisions")]
    named = set(re.findall(r"`([a-z_/]+(?:\.py|/))`", table))
    assert len(named) >= 12
    assert {name for name in named if not (SOURCE / name).exists()} == {"src/assay/"}
    tree = text[text.index("src/assay/\n") : text.index("contracts/  ")]
    names = {path.name for path in FILES}
    assert {name for name in re.findall(r"\b\w+\.py\b", tree) if name not in names} == set()
