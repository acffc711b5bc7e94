"""Ask and judge as EvalPlus does: prompts, inputs as data, and how results are compared.

Expected outputs are what the reference returns. The comparison is that of EvalPlus 0.3.1, so that
honest programs get the same verdicts there and here.

A chat model continues an answer with an open code block. The texts and stop words are those of
EvalPlus 0.3.1 and BigCodeBench 0.2.3 (Apache licence 2.0), whose wrappers are the same. A base
model continues the problem itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.data import codec, plain
from assay.types import Cases, Limits, Message, Prompt, Strategy, Tests

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.types import Problem, PromptForm

# EvalPlus allows every input four times what the reference needs, but at least one second (four in
# its next version), and 4 GB. Here these are CPU seconds.
LIMITS = Limits(cpu_s=100.0, call_cpu_s=4.0, wall_s=200.0, memory_mb=4096)

# Floats are compared as by numpy's allclose, with a tolerance that applies from the start or from
# the first expected float. Numbers that numpy treats as objects have to be equal: there is no
# tolerance for Decimals, Fractions and integers of more than 64 bits.
MATCHER = """
import math
from cmath import isfinite


def matcher():
    tolerance = ATOL

    def matches(arguments, expected, got):
        nonlocal tolerance
        same = SAME
        if tolerance == 0 and all_floats(expected):
            tolerance = 1e-6
        return same or (tolerance != 0 and type(got) is type(expected) and close(got, expected))

    def close(got, expected):
        if isinstance(expected, (list, tuple)):
            same_length = isinstance(got, (list, tuple)) and len(got) == len(expected)
            return same_length and all(map(close, got, expected))
        if got == expected:
            return True
        if not (is_number(got) and is_number(expected) and isfinite(expected)):
            return False
        return abs(got - expected) <= tolerance + 1e-7 * abs(expected)

    return matches


def is_number(value):
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, (float, complex))


def all_floats(value):
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def same_items(got, expected):
    wanted, found = set(expected), set()
    for item in got:  # not set(got), which can take for ever: a program chooses what collides
        if item not in wanted:
            return False
        found.add(item)
    return found == wanted
"""
SAME = "got == expected"
INSTRUCTION = (
    "Please provide a self-contained Python script that solves the following problem in a markdown "
    "code block:"
)
RESPONSE = (
    "Below is a Python script with a self-contained function that solves the problem and passes "
    "corresponding tests:"
)
PREFILL = f"{RESPONSE}\n```python\n"
# All models' marks of the end are texts here: some write them letter by letter.
STOP = ("<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(")
CHAT_STOP = (*STOP, "\n```\n")
FUNCTION_STOP = ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")


@dataclass(frozen=True, slots=True)
class EvalPlusRecord:
    """A task in EvalPlus's format. An input is a list of arguments."""

    task_id: str
    prompt: str
    entry_point: str
    canonical_solution: str
    base_input: object  # a list, or {} for none
    plus_input: object
    atol: object  # 0 or a float; copied into the tests' code as it is in the file


def case_tests(
    record: EvalPlusRecord,
    prompt_code: str,
    same: str = SAME,
    decoded: Callable[[Any], list[Any]] = lambda arguments: arguments,
    matcher: str = MATCHER,
) -> Tests:
    """Return the tests. ``same`` is an expression: whether ``got`` is right, without tolerance."""
    inputs = encode_inputs(record.base_input, record.plus_input, decoded)
    code = matcher.replace("ATOL", repr(record.atol)).replace("SAME", same)
    cases = Cases(inputs, {}, codec.digest(inputs))
    return Tests(record.entry_point, code, prompt_code, "separated", cases, prompt_code)


def encode_inputs(
    base: object, plus: object, decoded: Callable[[Any], list[Any]] = lambda arguments: arguments
) -> dict[str, list[Any]]:
    """Return both groups of inputs as plain data. A group without inputs is not a list."""
    groups = {"base": base, "plus": plus}
    return {
        group: [plain.encode(decoded(one)) for one in inputs] if isinstance(inputs, list) else []
        for group, inputs in groups.items()
    }


def fence(problem: Problem) -> str:
    """Return the problem in a code block."""
    return f"```\n{problem.prompt.strip()}\n```"


def build_upstream(
    base: Callable[[Problem], Prompt], show: Callable[[Problem], str] = fence
) -> dict[str, Strategy]:
    """Return the strategy ``upstream``: ``show`` is the problem in a chat, ``base`` without one."""

    def build(problem: Problem, form: PromptForm) -> Prompt:
        if form == "text":
            return base(problem)
        question = Message("user", f"{INSTRUCTION}\n{show(problem)}\n")
        return Prompt((question,), stop=CHAT_STOP, prefill=PREFILL)

    return {"upstream": Strategy("upstream", 1, build)}


def _continue_before(*stop: str) -> Callable[[Problem], Prompt]:
    """Return how EvalPlus lets a base model continue a problem until one of these texts."""
    return lambda problem: Prompt(text=f"{problem.prompt.strip()}\n", stop=STOP + stop)


FUNCTIONS = build_upstream(_continue_before(*FUNCTION_STOP))
DOCSTRINGS = build_upstream(_continue_before('\n"""', "\nassert"))
