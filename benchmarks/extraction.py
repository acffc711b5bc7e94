"""Compare our extraction with EvalPlus's sanitizer, on texts of real models.

    python benchmarks/extraction.py [--benchmarks humaneval ...] [--sets ollama ...]
                                    [--only-differing] [--speed]

Every raw text in ``$ASSAY_DATA_DIR/completions`` is turned into a program by both, and all programs
are judged by the same tests in the same sandbox. Tasks that EvalPlus's program passes and ours does
not are listed one by one. ``--only-differing`` leaves out texts of which both make the same syntax
tree, for benchmarks whose tests take long. ``--speed`` measures completions a second, and how the
time grows with hostile texts.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
from assay import benchmarks
from assay.cli._progress import ProgressDisplay
from assay.extract import NO_CODE, extract
from assay.judging import references
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Job, Problem, Program, PromptForm

SANITIZE = """
import json, sys
from evalplus.sanitize import sanitize
for line in sys.stdin:
    text, name = json.loads(line)
    try:
        code = sanitize(text, entrypoint=name)
    except Exception as error:
        code = ""
    print(json.dumps(code), flush=True)
"""
HOSTILE = {
    "fences": "```python\ndef g(): pass\n```\n",
    "open fences": "```\n",
    "definitions": "def f(x):\n    return (x\n",
    "brackets": "(" * 40,
    "prose": "This is what def f does: it def f.\n",
    "quotes": 'def f(x):\n    """\n',
    "thoughts": "<think>a",
    "prompts": ">>> f(1)\n1\n",
    "indented": "    def f(x):\n",
    "marks": "<|im_start|>",
    "spaces": " " * 40,
    "escapes": r"def f(x): return x\n",
}


@dataclass(frozen=True, slots=True)
class Text:
    """Hold what a model said, and how harnesses read it."""

    task_id: str
    raw: str
    form: PromptForm
    recorded: bool | None


def raw_texts(wanted: list[str]) -> dict[tuple[str, str], list[Text]]:
    """By set and benchmark."""
    found: dict[tuple[str, str], list[Text]] = defaultdict(list)
    prompts = {n: {p.task_id: p.prompt for p in benchmarks.load(n).problems} for n in wanted}
    for path in sorted(Path(os.environ.get("ASSAY_DATA_DIR", "."), "completions").glob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for r in map(json.loads, lines):
                if (
                    r["benchmark"] in wanted
                    and r["raw"]
                    and r["task_id"] in prompts[r["benchmark"]]
                ):
                    name = f"{path.name.partition('.')[0]}/{r['model']}/{r['variant']}"
                    told = [status for status in r["verdict"].values() if status]
                    passed = all(s == "pass" for s in told) if told else None
                    prompt = prompts[r["benchmark"]][r["task_id"]]
                    text, form = _asked(r["raw"], r["raw_kind"], prompt)
                    found[name, r["benchmark"]].append(Text(r["task_id"], text, form, passed))
    return found


def _asked(raw: str, kind: str, prompt: str) -> tuple[str, PromptForm]:
    if kind == "prompt+completion" and raw.startswith(prompt):
        return raw[len(prompt) :], "text"
    return raw, "text" if kind == "completion" else "chat"


def sanitized(texts: list[Text], problems: dict[str, Problem]) -> list[str]:
    """By EvalPlus's sanitizer: it parses and executes nothing."""
    lines = []
    for text in texts:
        problem = problems[text.task_id]
        whole = problem.prompt + text.raw if text.form == "text" else text.raw
        lines.append(json.dumps([whole, problem.tests.entry_point]))
    done = subprocess.run(
        [str(peers.python("evalplus")), "-c", SANITIZE],
        input="\n".join(lines), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


class Judge:
    """Executes every program once."""

    def __init__(self, name: str, sandbox: Sandbox) -> None:
        with ProgressDisplay(name, quiet=not sys.stderr.isatty()) as display:
            self._benchmark = references.check(benchmarks.load(name), sandbox, display).benchmark
        self.problems = {p.task_id: p for p in self._benchmark.problems}
        self._sandbox = sandbox
        self._passed: dict[tuple[str, str], bool] = {}

    def passed(self, programs: list[tuple[str, str]]) -> list[bool]:
        """Return whether each program, given with its task, passes."""
        waiting = [p for p in dict.fromkeys(programs) if p not in self._passed]
        about = self._benchmark
        jobs = [
            Job(
                task_id, number, Program(code, "x"), self.problems[task_id].tests, about.limits,
                about.imports, about.environment,
            )
            for number, (task_id, code) in enumerate(waiting)
        ]  # fmt: skip
        for verdict in self._sandbox.judge(jobs):
            self._passed[waiting[verdict.sample]] = verdict.status == "pass"
        return [self._passed[program] for program in programs]


def same_program(one: str, other: str) -> bool:
    try:
        return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except (SyntaxError, ValueError, RecursionError):
        return one == other


def compare(wanted: list[str], sets: list[str], workers: int, only_differing: bool) -> None:
    sandbox = open_sandbox("process", workers)
    total: dict[str, int] = defaultdict(int)
    for name in wanted:
        judge = Judge(name, sandbox)
        for (title, _), texts in raw_texts([name]).items():
            if sets and not any(part in title for part in sets):
                continue
            found = [extract(t.raw, judge.problems[t.task_id], t.form) for t in texts]
            clean = sanitized(texts, judge.problems)
            if only_differing:
                kept = [i for i, c in enumerate(clean) if not same_program(found[i].code, c)]
                print(f"{title} {name}: {len(kept)} of {len(texts)} programs differ")
                texts, found, clean = ([some[i] for i in kept] for some in (texts, found, clean))
            tasks = [text.task_id for text in texts]
            ours = judge.passed([(t, p.code) for t, p in zip(tasks, found, strict=True)])
            theirs = judge.passed(list(zip(tasks, clean, strict=True)))
            told = sum(map(bool, (t.recorded for t in texts)))
            known = any(t.recorded is not None for t in texts)
            print(
                f"{title} {name}: {len(texts)} texts, recorded {told if known else '-'}, "
                f"EvalPlus's sanitizer {sum(theirs)}, ours {sum(ours)}", flush=True,
            )  # fmt: skip
            total["ours"] += sum(ours)
            total["theirs"] += sum(theirs)
            for number, text in enumerate(texts):
                if ours[number] or not (theirs[number] or text.recorded):
                    continue
                by = "the sanitizer" if theirs[number] else "the record"
                total[f"lost to {by}"] += 1
                print(f"   lost to {by}: {text.task_id} #{number} ({found[number].rule})")
    print(dict(total))
    sandbox.close()


def speed(wanted: list[str]) -> None:
    problems = {p.task_id: p for name in wanted for p in benchmarks.load(name).problems}
    texts = [t for name in wanted for found in raw_texts([name]).values() for t in found]
    started = time.process_time()
    none = sum(extract(t.raw, problems[t.task_id], t.form) == NO_CODE for t in texts)
    seconds = time.process_time() - started
    length = sum(len(t.raw) for t in texts) / len(texts)
    print(
        f"{len(texts) / seconds:,.0f} completions/s on one core ({len(texts)}, {length:.0f} "
        f"characters on average, {none} without code)"
    )
    problem: Any = next(iter(problems.values()))
    for title, piece in HOSTILE.items():
        times = []
        for size in (1 << 17, 1 << 18, 1 << 19, 1 << 20):
            text = (piece * (size // len(piece) + 1))[:size].replace("f", problem.tests.entry_point)
            started = time.process_time()
            for form in ("chat", "text"):
                extract(text[:size], problem, form)  # type: ignore[arg-type]
            times.append(time.process_time() - started)
        print(f"{title:<12}" + "".join(f"{s:9.3f} s" for s in times))


def main() -> None:
    parser = argparse.ArgumentParser()
    names = ["humaneval", "humanevalplus", "mbppplus"]
    parser.add_argument("--benchmarks", nargs="*", default=names)
    parser.add_argument(
        "--sets", nargs="*", default=[], help="parts of set names. Default: all sets"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-differing", action="store_true")
    parser.add_argument("--speed", action="store_true")
    asked = parser.parse_args()
    if asked.speed:
        speed(asked.benchmarks)
    else:
        compare(asked.benchmarks, asked.sets, asked.workers, asked.only_differing)


if __name__ == "__main__":
    main()
