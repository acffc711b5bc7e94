"""MBPP+ (EvalPlus, version 0.2.0): 378 tasks of MBPP with many more inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.benchmarks import benchmarks
from assay.benchmarks.support.declaring import per_record
from assay.benchmarks.support.evalplus import (
    DOCSTRINGS,
    LIMITS,
    SAME,
    EvalPlusRecord,
    case_tests,
)
from assay.datasets.pinned import MBPPPLUS
from assay.types import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = list[Any]


def _problem(record: EvalPlusRecord) -> Problem:
    number = int(record.task_id.partition("/")[2])
    same = SPECIAL.get(record.entry_point, SAME)
    return Problem(
        task_id=record.task_id,
        prompt=record.prompt,
        reference=record.prompt + record.canonical_solution,
        tests=case_tests(record, "", same, DECODERS.get(number, list)),
    )


# Tasks with more right answers than what the reference returns.
SPECIAL = {
    "are_equivalent": "True",
    "sum_div": "got == expected or got == 0",
    # The height may also be the perpendicular one.
    "surface_Area": "got == expected or abs(got - round(arguments[0] ** 2 + 2 * arguments[0]"
    " * math.hypot(arguments[0] / 2, arguments[1]))) <= tolerance",
    # The shorter number may also be padded with zeros.
    "digit_distance_nums": "got == expected or got == sum(abs(int(a) - int(b)) for a, b in zip("
    "*(str(n).zfill(max(len(str(m)) for m in arguments)) for n in arguments)))",
    **dict.fromkeys(
        (
            "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly",
            "larg_nnum", "intersection_array", "find_dissimilar", "Diff",
        ),
        "same_items(got, expected)",
    ),
    **dict.fromkeys(
        ("check_str", "text_match_three", "text_starta_endb"),
        "(got if isinstance(got, bool) else got is not None) == (expected is not None)",
    ),
}  # fmt: skip


def _tupled(value: Any) -> Any:
    """Return lists as tuples, at any depth."""
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


# How inputs get their original types, by task: JSON has no tuples, sets and complex numbers.
_DECODERS: tuple[tuple[Callable[[Arguments], Arguments], tuple[int, ...]], ...] = (
    (
        lambda arguments: [tuple(a) for a in arguments],
        (
            2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630,
            726, 740, 744, 809,
        ),
    ),
    (
        lambda arguments: [[tuple(item) for item in a] for a in arguments],
        (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    ),
    (lambda arguments: [tuple(tuple(item) for item in a) for a in arguments], (259, 401, 445)),
    (
        lambda arguments: [[tuple(item) for item in arguments[0]], *arguments[1:]],
        (75, 413, 444, 753),
    ),
    (
        lambda arguments: [tuple(arguments[0]), *arguments[1:]],
        (250, 307, 405, 446, 617, 720, 763, 808),
    ),
    (lambda arguments: [arguments[0], tuple(arguments[1])], (106, 750)),
    (
        lambda arguments: [
            [set(item) if isinstance(item, list) and item else {} for item in arguments[0]]
        ],
        (115,),
    ),
    (lambda arguments: [float(arguments[0]), complex(arguments[1])], (124,)),
    (lambda arguments: [complex(arguments[0])], (252,)),
    (
        lambda arguments: [tuple(tuple(i) if isinstance(i, list) else i for i in arguments[0])],
        (278,),
    ),
    (
        lambda arguments: [
            {key: tuple(value) for key, value in arguments[0].items()}, *arguments[1:]
        ],
        (722,),
    ),
    (lambda arguments: [_tupled(a) for a in arguments], (580, 615, 791)),
)  # fmt: skip
DECODERS = {task: decode for decode, tasks in _DECODERS for task in tasks}

benchmarks.declare(
    MBPPPLUS, EvalPlusRecord, per_record(_problem), suites=("core", "full"), limits=LIMITS,
    strategies=DOCSTRINGS,
)  # fmt: skip
