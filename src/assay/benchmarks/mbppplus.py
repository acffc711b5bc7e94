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


# The original types of inputs: JSON has no tuples, sets and complex numbers.
def _all_tuples(arguments: Arguments) -> Arguments:
    return [tuple(a) for a in arguments]


def _lists_of_tuples(arguments: Arguments) -> Arguments:
    return [[tuple(item) for item in a] for a in arguments]


def _tuples_of_tuples(arguments: Arguments) -> Arguments:
    return [tuple(tuple(item) for item in a) for a in arguments]


def _first_list_of_tuples(arguments: Arguments) -> Arguments:
    return [[tuple(item) for item in arguments[0]], *arguments[1:]]


def _first_tuple(arguments: Arguments) -> Arguments:
    return [tuple(arguments[0]), *arguments[1:]]


def _second_tuple(arguments: Arguments) -> Arguments:
    return [arguments[0], tuple(arguments[1])]


def _list_of_sets(arguments: Arguments) -> Arguments:
    return [[set(item) if isinstance(item, list) and item else {} for item in arguments[0]]]


def _float_and_complex(arguments: Arguments) -> Arguments:
    return [float(arguments[0]), complex(arguments[1])]


def _complex(arguments: Arguments) -> Arguments:
    return [complex(arguments[0])]


def _tuple_that_may_hold_tuples(arguments: Arguments) -> Arguments:
    return [tuple(tuple(i) if isinstance(i, list) else i for i in arguments[0])]


def _dict_of_tuples(arguments: Arguments) -> Arguments:
    return [{key: tuple(value) for key, value in arguments[0].items()}, *arguments[1:]]


def _tuples_throughout(arguments: Arguments) -> Arguments:
    def tupled(value: Any) -> Any:
        return tuple(map(tupled, value)) if isinstance(value, list) else value

    return [tupled(a) for a in arguments]


_TASKS: dict[Callable[[Arguments], Arguments], tuple[int, ...]] = {
    _all_tuples: (
        2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726,
        740, 744, 809,
    ),
    _lists_of_tuples: (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    _tuples_of_tuples: (259, 401, 445),
    _first_list_of_tuples: (75, 413, 444, 753),
    _first_tuple: (250, 307, 405, 446, 617, 720, 763, 808),
    _second_tuple: (106, 750),
    _list_of_sets: (115,),
    _float_and_complex: (124,),
    _complex: (252,),
    _tuple_that_may_hold_tuples: (278,),
    _dict_of_tuples: (722,),
    _tuples_throughout: (580, 615, 791),
}  # fmt: skip
DECODERS = {task: decode for decode, tasks in _TASKS.items() for task in tasks}

benchmarks.declare(
    MBPPPLUS, EvalPlusRecord, per_record(_problem), suites=("core", "full"), limits=LIMITS,
    strategies=DOCSTRINGS,
)  # fmt: skip
