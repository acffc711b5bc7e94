"""HumanEval Pro, MBPP Pro and BigCodeBench-Lite Pro (Yu et al. 2024): self-invoking problems.

Each asks for two functions. The first is a problem of the original benchmark. The second is harder,
calls the first, and is what the tests call.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.benchmarks import benchmarks
from assay.benchmarks.bigcodebench import ENVIRONMENT, IMPORTS, LIMITS, MODULE
from assay.benchmarks.support.declaring import (
    SHORT_TESTS,
    PromptBuilder,
    name_strategies,
    pin_commit,
)
from assay.benchmarks.support.program_code import preamble_of
from assay.data.test_code import called_functions, code_tests
from assay.datasets.catalogue import DataFile
from assay.types import Message, Problem, Prompt, PromptForm, Tests

Pairs = Mapping[str, tuple[str, str]]  # the beginnings of a problem's two functions, by task
PUBLISHED = "2024-12-30"
MAX_TOKENS = 4096  # upstream's. 512 cuts a tenth of a 1.5B model's answers to HumanEval Pro off
# The texts ``upstream`` and ``upstream-cot`` are those of CodeEval-Pro (MIT licence).
STOP = ("\n```", "\nif __name__")
SYSTEM = (
    "You are an exceptionally intelligent coding assistant that consistently delivers accurate and "
    "reliable responses to user instructions."
)
BOTH = (
    "Write a solution of python file to the following problems, the solution of the second problem "
    "requires single or multiple calls to the first solution."
)
STEPWISE = "Let's think step by step.\n"
PLAIN = (
    "Write both of these Python functions. The second one calls the first. Answer with the whole "
    "file in one Python code block."
)
PLAN = (
    "Write both of these Python functions. The second one calls the first. Before you write code, "
    "plan in short steps how the first function works, and how the second uses it. Then give the "
    "whole file in one Python code block."
)
# The numbers of MBPP+'s tasks, in the order of MBPP Pro's.
MBPP_NUMBERS = (
    2, 3, 4, 6, 7, 8, 9, 11, 12, 14, 16, 17, 18, 19, 20, 56, 57, 58, 59, 61, 62, 63, 64, 65, 66,
    67, 68, 69, 70, 71, 72, 74, 75, 77, 79, 80, 82, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94,
    95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 108, 109, 111, 113, 116, 118, 119, 120,
    123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 135, 137, 138, 139, 140, 141, 142, 145,
    160, 161, 162, 165, 166, 167, 168, 170, 171, 172, 222, 223, 224, 226, 227, 230, 232, 233, 234,
    235, 237, 238, 239, 240, 242, 244, 245, 247, 250, 251, 252, 253, 255, 256, 257, 259, 260, 261,
    262, 264, 265, 266, 267, 268, 269, 270, 271, 272, 273, 274, 276, 277, 278, 279, 280, 281, 282,
    283, 284, 285, 286, 287, 290, 292, 293, 294, 296, 297, 299, 300, 301, 305, 306, 308, 309, 310,
    311, 312, 388, 389, 390, 391, 392, 394, 395, 397, 398, 404, 405, 406, 409, 410, 412, 413, 414,
    415, 418, 419, 420, 421, 422, 424, 425, 426, 427, 428, 429, 430, 432, 433, 435, 436, 437, 439,
    440, 441, 445, 446, 447, 448, 450, 451, 453, 454, 455, 456, 457, 458, 459, 460, 462, 463, 465,
    468, 470, 471, 472, 473, 474, 475, 476, 477, 478, 479, 554, 555, 556, 557, 558, 559, 560, 562,
    563, 564, 565, 566, 567, 568, 569, 572, 573, 576, 577, 578, 579, 580, 581, 583, 585, 586, 587,
    588, 589, 590, 591, 592, 593, 594, 596, 597, 598, 599, 600, 602, 603, 604, 605, 606, 607, 608,
    610, 611, 612, 614, 615, 616, 618, 619, 620, 622, 623, 624, 626, 628, 629, 630, 631, 632, 633,
    635, 637, 638, 639, 641, 643, 644, 720, 721, 722, 723, 724, 725, 726, 728, 730, 731, 732, 733,
    734, 735, 736, 737, 739, 740, 741, 742, 743, 744, 745, 748, 749, 750, 751, 752, 753, 754, 755,
    757, 758, 759, 760, 762, 763, 764, 765, 766, 767, 769, 770, 771, 772, 773, 775, 777, 778, 780,
    781, 782, 784, 785, 786, 787, 788, 790, 791, 792, 793, 794, 796, 797, 798, 799, 800, 801, 803,
    804, 805, 806, 807, 808, 809,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeEvalProRecord:
    id: object  # a number, or the id in BigCodeBench
    raw_problem: str
    raw_solution: str
    new_problem: str
    new_solution: str
    test_code: str


def _pin(name: str, records: int, size: int, *digests: str) -> DataFile:
    return pin_commit(
        "CodeEval-Pro/CodeEval-Pro", "36f292eafc597b38535fbc8b4aafea8e5c654e3c",
        f"dataset/{name}.json", *digests, name=name.replace("_", "-"),
        path=f"codeeval-pro/{name}.json.gz", records=records, size=size,
    )  # fmt: skip


HUMANEVAL_PRO = _pin(
    "humaneval_pro", 164, 277_552,
    "d67ad94366d8182804d8cb59de558d211072493b13a6c23ddda42a2e1367dc7a",
    "99816c59b10f722389b50eb3bb70da23d160a9cfa6a91e287bf609cc99c08da8",
)  # fmt: skip
MBPP_PRO = _pin(
    "mbpp_pro", 378, 406_121,
    "bb2edf4f2da393403083977e94cb4e4bbbe68fcb85495dfdf500885a945e8b3b",
    "9db3ddc84e348e3196edf9bee426d0851f85d867eeab3f9ed1b55cad992b2d6f",
)  # fmt: skip
BIGCODEBENCH_LITE_PRO = _pin(
    "bigcodebench_lite_pro", 57, 191_832,
    "1a9e818a7ecece6346f47673276bfc47ab2bb34efd8cda26e0b819eb13bb6ec3",
    "4e0114f08d36bab328e78b728f210c7ce05fcd6b5f693d7ba6f1a27e4a2e28a8",
)  # fmt: skip


def _problem(record: CodeEvalProRecord, prefix: str, cluster: str, tests: Tests) -> Problem:
    return Problem(
        task_id=f"{prefix}/{str(record.id).rpartition('/')[2]}",
        prompt=f"{record.raw_problem.strip()}\n",  # what a base model continues
        reference=_reference(record),
        tests=tests,
        cluster=cluster,
        date=PUBLISHED,
    )


def _humaneval_problem(record: CodeEvalProRecord) -> Problem:
    return _problem(record, "HumanEvalPro", f"HumanEval/{record.id}", _code_tests(record))


def _mbpp_problem(record: CodeEvalProRecord) -> Problem:
    number = MBPP_NUMBERS[int(str(record.id))]
    return _problem(record, "MbppPro", f"Mbpp/{number}", _code_tests(record))


def _library_problem(record: CodeEvalProRecord) -> Problem:
    # Data frames and plots are not plain data, so the tests share the program's interpreter.
    prompt_code = f"{_prompt_code(record)}\n"
    entry_point, preamble = _entry_point(record), f"{MODULE}{prompt_code}"
    tests = Tests(entry_point, record.test_code, preamble, prompt_code=prompt_code)
    return _problem(record, "BigCodeBenchLitePro", str(record.id), tests)


def _code_tests(record: CodeEvalProRecord) -> Tests:
    return code_tests(_entry_point(record), record.test_code, _prompt_code(record))


def _reference(record: CodeEvalProRecord) -> str:
    return record.raw_problem + record.raw_solution + record.new_problem + record.new_solution


def _entry_point(record: CodeEvalProRecord) -> str:
    """Return the function that the tests call: the first one that the reference defines."""
    body = _parse(_reference(record)).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return next(name for name in called_functions(record.test_code) if name in defined)


def _prompt_code(record: CodeEvalProRecord) -> str:
    """Return imports and helpers of the first problem, without the function to be written."""
    begun = f"{record.raw_problem.rstrip()}\n    pass\n"
    functions = [n.name for n in _parse(begun).body if isinstance(n, ast.FunctionDef)]
    return preamble_of(begun, functions[-1])


def _parse(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes
        return ast.parse(code)


def _build(
    make: Callable[[CodeEvalProRecord], Problem], records: list[CodeEvalProRecord]
) -> dict[str, Any]:
    """Return the problems and strategies. A base model gets upstream's texts, which show both."""
    problems = tuple(map(make, records))
    pairs: Pairs = {
        problem.task_id: (record.raw_problem.strip(), record.new_problem.strip())
        for problem, record in zip(problems, records, strict=True)
    }
    upstream, stepwise = (
        functools.partial(_ask_upstream, pairs, before) for before in ("", STEPWISE)
    )
    strategies = name_strategies(
        standard=functools.partial(_ask, pairs, PLAIN, upstream),
        scot=functools.partial(_ask, pairs, PLAN, stepwise),
        upstream=upstream,
        upstream_cot=stepwise,
    )
    return {"problems": problems, "strategies": strategies}


def _ask_upstream(pairs: Pairs, before: str, problem: Problem, form: PromptForm) -> Prompt:
    first, second = pairs[problem.task_id]
    question = f"@@ Instruction\n{BOTH}\n```python\n{first}\n{second}\n```\n"
    if form == "text":
        answer = f"{before}```python\n{first}\n"
        return Prompt(text=f"{SYSTEM}\n{question}\n@@ Response\n{answer}", stop=STOP)
    question = f"\n{question}@@ Response\n{before}"
    return Prompt(messages=(Message("system", SYSTEM), Message("user", question)))


def _ask(
    pairs: Pairs, words: str, base: PromptBuilder, problem: Problem, form: PromptForm
) -> Prompt:
    if form == "text":
        return base(problem, form)
    first, second = pairs[problem.task_id]
    question = f"{words}\n\n```python\n{first}\n\n\n{second}\n```"
    return Prompt(messages=(Message("user", question),))


_SHORT: dict[str, Any] = {"suites": ("fresh", "full"), "time_rule": SHORT_TESTS}
_LIBRARIES = {"suites": ("full",), "limits": LIMITS, "imports": IMPORTS, "environment": ENVIRONMENT}
for _data, _make, _settings in (
    (HUMANEVAL_PRO, _humaneval_problem, _SHORT),
    (MBPP_PRO, _mbpp_problem, _SHORT),
    (BIGCODEBENCH_LITE_PRO, _library_problem, _LIBRARIES),
):
    benchmarks.declare(
        _data, CodeEvalProRecord, functools.partial(_build, _make), group="harder twins",
        upstream=("upstream", "upstream-cot"), only_own_strategies=True, max_tokens=MAX_TOKENS,
        **_settings,
    )  # fmt: skip
