"""HumanEval Pro, MBPP Pro and BigCodeBench-Lite Pro (Yu et al. 2024): self-invoking problems.

Each asks for two functions. The first is a problem of the original benchmark. The second is harder,
calls the first, and is what the tests call.
"""

from __future__ import annotations

import ast
import functools
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.benchmarks import Description, benchmarks
from assay.benchmarks.bigcodebench import ENVIRONMENT, IMPORTS, LIMITS, MODULE
from assay.benchmarks.support.pro_prompts import Pair, build_strategies
from assay.benchmarks.support.prompt_code import preamble_of
from assay.benchmarks.support.time_rule import SHORT_TESTS
from assay.data.test_code import called_functions, code_tests
from assay.datasets.catalogue import DataFile, pin, read_records
from assay.types import Benchmark, Problem, Tests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.progress import Announce

PUBLISHED = "2024-12-30"
MAX_TOKENS = 4096  # upstream's. 512 cuts a tenth of a 1.5B model's answers to HumanEval Pro off
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


def _pin(name: str, records: int, size: int, sha256: str, records_sha256: str) -> DataFile:
    return pin(
        DataFile(
            name=name.replace("_", "-"),
            path=f"codeeval-pro/{name}.json.gz",
            version="36f292ea",
            licence="MIT",
            records=records,
            sha256=sha256,
            records_sha256=records_sha256,
            urls=(
                "https://raw.githubusercontent.com/CodeEval-Pro/CodeEval-Pro/"
                f"36f292eafc597b38535fbc8b4aafea8e5c654e3c/dataset/{name}.json",
            ),
            size=size,
        )
    )


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


def _problem(record: CodeEvalProRecord, task_id: str, cluster: str, tests: Tests) -> Problem:
    return Problem(
        task_id=task_id,
        prompt=f"{record.raw_problem.strip()}\n",  # what a base model continues
        reference=_reference(record),
        tests=tests,
        cluster=cluster,
        date=PUBLISHED,
    )


def _humaneval_problem(record: CodeEvalProRecord) -> Problem:
    number = record.id
    return _problem(record, f"HumanEvalPro/{number}", f"HumanEval/{number}", _code_tests(record))


def _mbpp_problem(record: CodeEvalProRecord) -> Problem:
    number = MBPP_NUMBERS[int(str(record.id))]
    return _problem(record, f"MbppPro/{record.id}", f"Mbpp/{number}", _code_tests(record))


def _library_problem(record: CodeEvalProRecord) -> Problem:
    # Data frames and plots are not plain data, so the tests share the program's interpreter.
    preamble = f"{MODULE}{_prompt_code(record)}\n"
    tests = Tests(
        _entry_point(record), record.test_code, preamble, prompt_code=preamble.removeprefix(MODULE)
    )
    number = str(record.id).partition("/")[2]
    return _problem(record, f"BigCodeBenchLitePro/{number}", str(record.id), tests)


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


def _load(
    data: DataFile,
    make: Callable[[CodeEvalProRecord], Problem],
    announce: Announce,
    data_dir: Path | None,
) -> Benchmark:
    found = read_records(CodeEvalProRecord, data, announce, data_dir)
    problems = tuple(map(make, found))
    pairs = {
        problem.task_id: Pair(record.raw_problem.strip(), record.new_problem.strip())
        for problem, record in zip(problems, found, strict=True)
    }
    benchmark = Benchmark(
        name=data.name,
        version=data.version,
        data_sha256=data.sha256,
        problems=problems,
        strategies=build_strategies(pairs),
        only_own_strategies=True,
        max_tokens=MAX_TOKENS,
    )
    if data is BIGCODEBENCH_LITE_PRO:
        return replace(benchmark, limits=LIMITS, imports=IMPORTS, environment=ENVIRONMENT)
    return replace(benchmark, time_rule=SHORT_TESTS)


for _data, _make, _environment in (
    (HUMANEVAL_PRO, _humaneval_problem, ""),
    (MBPP_PRO, _mbpp_problem, ""),
    (BIGCODEBENCH_LITE_PRO, _library_problem, ENVIRONMENT),
):
    _description = Description(
        _data.records, _data, environment=_environment, group="harder twins",
        suites=("full",) if _environment else ("fresh", "full"),
        strategies=("upstream", "upstream-cot"),
    )  # fmt: skip
    benchmarks.register(_data.name, _description)(functools.partial(_load, _data, _make))
