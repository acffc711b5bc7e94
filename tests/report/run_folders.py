"""Run folders for tests of pages, written by the same code as a run's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from assay.protocol import Protocol
from assay.runs import Environment, Result, build_result, encode_judged, open_run, write_result
from assay.scoring import coverage, estimates, tally
from assay.types import Completion, ModelIdentity, Program, Verdict
from tests.runs.consistent import fit_protocol
from tests.skips import SHARED_DATA
from tests.test_protocol import BASE

Judged = tuple[Completion, Program | None, Verdict]
RECORDED = Path("completions") / "qwen25coder_base_official.jsonl.gz"
REASONS = ("wrong-answer", "exception", "timeout", "syntax")


def write_run(
    results_dir: Path, samples: Iterable[Judged], *, model: str = "model-a", name: str = "toy",
    n_samples: int = 1, protocol: Protocol = BASE, finished: bool = True,
) -> Result | None:  # fmt: skip
    """Write a run's folder and, if it is finished, its results file."""
    judged = list(samples)
    tasks = list(dict.fromkeys(completion.task_id for completion, _, _ in judged))
    wanted = fit_protocol(protocol, tasks, benchmark=name, n_samples=n_samples)
    identity = ModelIdentity(model, "replay", f"weights of {model}", "chat")
    run = open_run(results_dir, wanted, identity, fresh=True)
    run.add_environment(Environment(assay="0.0", platform="test"))
    for completion, _, _ in judged:
        run.add_completion(completion)
    run.add_judged(
        [encode_judged(verdict, [program] if program else []) for _, program, verdict in judged]
    )
    result = None
    if finished:
        verdicts = [verdict for _, _, verdict in judged]
        tallies = tally(tasks, verdicts)
        result = build_result(
            run, wanted, tallies, coverage(tallies, n_samples, len(tasks)), estimates(tallies)
        )
        write_result(result)
    run.close()
    return result


def sample(
    task: str, number: int = 0, *, answer: str = "x = 1\n", code: str | None = None,
    status: str = "pass", reason: str = "", detail: str = "", test: str = "", output: str = "",
    rule: str = "fenced", tokens: int = 20, cpu_s: float = 0.01, call: str | None = None,
    actual: str | None = None,
) -> Judged:  # fmt: skip
    """Return a sample with its program and verdict."""
    completion = Completion(task, number, answer, "stop", 10, tokens, 50.0, 0, False)
    program = Program(answer if code is None else code, rule)
    verdict = Verdict(
        task, number, status, reason or ("passed" if status == "pass" else "wrong-answer"),  # type: ignore[arg-type]
        detail, test, cpu_s, cpu_s * 2, 5.0, "separated", rule, {}, output, call, actual=actual,
    )  # fmt: skip
    return completion, program, verdict


def toy_samples(failed: Sequence[int] = (1, 3), problems: int = 6, n: int = 1) -> list[Judged]:
    """Return samples of a few problems; those with these numbers fail."""
    found = []
    for problem in range(problems):
        for number in range(n):
            answer = (
                f"Here it is:\n```python\ndef f{problem}(x):\n    return x + {number % 2}\n```\n"
            )
            code = f"def f{problem}(x):\n    return x + {number % 2}\n"
            fails = problem in failed and (n == 1 or number > 0)
            found.append(
                sample(
                    f"toy/{problem}", number, answer=answer, code=code,
                    status="fail" if fails else "pass",
                    detail="AssertionError" if fails else "",
                    call="f(1)" if fails else None, actual="3" if fails else None,
                    test=f"assert f{problem}(1) == 2" if fails else "",
                    tokens=10 + problem, cpu_s=0.001 * (problem + 1),
                )
            )  # fmt: skip
    return found


HOSTILE = {
    "script": "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "comment": "<!-- <script> --><style>body{display:none}</style><base href='http://evil.test/'>",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x08\x08\x7f",
    "bidi": "access = 'user\u202e \u2066// only admins\u2069 \u2066' \u200b\u200e\ufeff",
    "surrogates": "lone \ud800 and \udcff, null \x00, replaced \ufffd",
    "one line": "x" * 3_000_000,
    "many lines": "y = 1\n" * 60_000,
    "tags": "\U000e0041\U000e0042 tag characters, zalgo a" + "\u0301" * 300,
    "html name": "&lt;b&gt; &amp; \"quoted\" 'single' `back` ${template} \\u003c",
    "empty": "",
}


def hostile_samples() -> list[Judged]:
    """Return samples whose texts try to break out of a page."""
    return [
        sample(
            f"toy/{name}<b>\u202e", 0, answer=text, code=text[:100_000], status="fail",
            reason="exception", detail=text[:5_000], test=f"assert f('{text[:500]}') == 1",
            output=text[:5_000], rule="fenced</script>",
        )
        for name, text in HOSTILE.items()
    ] + [sample("toy/half \ud800", answer="x")]  # fmt: skip


def large_samples(n: int = 10) -> list[Judged]:
    """Return n samples for each of BigCodeBench's problems, with recorded texts."""
    with gzip.open(SHARED_DATA / RECORDED, "rt") as lines:
        records = [json.loads(line) for line in lines]
    wanted = [r for r in records if r["benchmark"] == "bigcodebench" and "7B" in r["model"]]
    found = []
    for at, record in enumerate(wanted):
        for number in range(n):
            text = f"{record['raw']}\n# sample {number * (at % 3)}\n"
            passed = (at * 7 + number * 3) % 5 < 2
            reason = "passed" if passed else REASONS[(at + number) % len(REASONS)]
            found.append(
                sample(
                    record["task_id"], number, answer=text, code=text,
                    status="pass" if passed else "fail", reason=reason,
                    detail="" if passed else f"AssertionError: case {at} of sample {number}",
                    tokens=len(text) // 4, cpu_s=0.01 + at / 5000,
                )
            )  # fmt: skip
    return found
