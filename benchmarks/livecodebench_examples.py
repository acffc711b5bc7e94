"""Judge the 880 recorded o1-mini programs by the examples in their statements, one-sidedly.

    ASSAY_DATA_DIR=... python benchmarks/livecodebench_examples.py [--workers 2] [--shown 40]

The recording has statements, programs and upstream's verdicts, but no tests. A program that was
graded right must pass the examples of its statement. One that was graded wrong may pass them too,
so the other direction says nothing. Examples are read from the text: "Sample Input 1" and "Sample
Output 1" on AtCoder and Codeforces, "Input: a = 1, b = 2" and "Output: 3" on LeetCode. Problems
whose examples cannot be read are counted, not judged.
"""

from __future__ import annotations

import argparse
import ast
import collections
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

from assay.benchmarks.livecodebench import ENVIRONMENT, IMPORTS, LIMITS, MARK_OF, MATCHER, PRELUDE
from assay.benchmarks.support.program_code import CLASS, with_positional_arguments
from assay.data import text_cases
from assay.data.failures import explain_failure
from assay.sandbox import open_sandbox
from assay.types import Job, Program, Tests

FILE = "livecodebench/o1-mini-v5-submission.json.gz"
SAMPLE = re.compile(
    r"Sample Input (\d+):?\n+(.*?)\n+Sample Output \1:?\n+(.*?)(?=\n\n|\nSample Input|\Z)",
    re.DOTALL,
)
EXAMPLE = re.compile(r"Input: ?(.+?)\n+Output: ?(.+?)(?=\n|\Z)", re.DOTALL)
METHOD = re.compile(r"def (\w+)\(self")


def read_samples(statement: str, platform: str) -> list[tuple[str, str]]:
    """Return the examples of a problem on standard input."""
    found = [(given, output) for _, given, output in SAMPLE.findall(statement)]
    if platform == "codeforces":  # its lines are written with empty ones between them
        return [(given.replace("\n\n", "\n"), output) for given, output in found]
    return found


def read_calls(statement: str) -> list[tuple[str, str]]:
    """Return the examples of a method: arguments in JSON, one per line, and the result."""
    pairs = []
    for given, output in EXAMPLE.findall(statement):
        try:
            values = [keyword.value for keyword in _keywords(given)]
            arguments = [json.dumps(_value(ast.unparse(value))) for value in values]
            pairs.append(("\n".join(arguments), json.dumps(_value(output))))
        except (SyntaxError, ValueError):
            continue
    return pairs


def _keywords(given: str) -> list[ast.keyword]:
    call = ast.parse(f"f({' '.join(given.split())})", mode="eval").body
    assert isinstance(call, ast.Call)
    if call.args:
        raise ValueError("an argument without a name")
    return call.keywords


def _value(text: str) -> Any:
    names = {"true": "True", "false": "False", "null": "None"}
    return ast.literal_eval(re.sub(r"\b(true|false|null)\b", lambda m: names[m[0]], text.strip()))


def build_job(record: dict[str, Any]) -> Job | None:
    """Return the program of a record with the examples as tests, or None without examples."""
    statement, starter = record["question_content"], record["starter_code"]
    program = Program(record["code_list"][0], "recorded")
    if starter:
        pairs = read_calls(statement)
        adapter = with_positional_arguments(METHOD.findall(starter)[0])
        tests = Tests(
            CLASS, MATCHER, PRELUDE, "separated",
            texts=text_cases.pack(pairs, "calls"), adapter=adapter,
        )  # fmt: skip
    else:
        pairs = read_samples(statement, record["platform"])
        tests = Tests("", "", PRELUDE, "separated", texts=text_cases.pack(pairs))
    if not pairs:
        return None
    return Job(record["question_id"], 0, program, tests, LIMITS, IMPORTS, ENVIRONMENT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shown", type=int, default=40)
    options = parser.parse_args()
    path = Path(os.environ["ASSAY_DATA_DIR"], FILE)
    records = {r["question_id"]: r for r in json.loads(gzip.decompress(path.read_bytes()))}
    jobs = {name: build_job(record) for name, record in records.items()}
    print(f"{len(records)} problems, {sum(job is None for job in jobs.values())} without examples")
    sandbox = open_sandbox("process", options.workers)
    table: collections.Counter[tuple[str, bool, str]] = collections.Counter()
    against = []
    for verdict in sandbox.judge([job for job in jobs.values() if job]):
        record = records[verdict.task_id]
        graded = bool(record["graded_list"][0])
        table[record["platform"], graded, verdict.status] += 1
        if graded and verdict.status != "pass":
            against.append(verdict)
    sandbox.close()
    for (platform, graded, status), count in sorted(table.items()):
        print(
            f"{platform:12} graded {'right' if graded else 'wrong'}  examples {status:8}{count:5}"
        )
    print(f"graded right, but failing an example: {len(against)}")
    for verdict in against[: options.shown]:
        mark = MARK_OF.get(verdict.task_id) or MARK_OF.get(
            records[verdict.task_id]["question_title"]
        )
        print(
            f"  {verdict.task_id} {mark or ''} {verdict.reason}: {explain_failure(verdict)[:150]}"
        )


if __name__ == "__main__":
    main()
