"""Share the question itself, and examples that occur in no benchmark, between strategies."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm

# Texts that show that a base model has finished the function and starts something else.
STOP = ("\ndef ", "\nclass ", "\nif __name__", "\nprint(", "\nassert ", "\n#", "\n```")

COMPLETE = "Complete the following Python function."
WRITE = "Write the Python function that is described here."
ANSWER = "Answer with the whole function in one Python code block."


# A program that reads standard input has all of that, so only a fence or a new text ends it.
SCRIPT_STOP = ("\n```", '\n"""')


def stop_words(problem: Problem) -> tuple[str, ...]:
    """Return the texts that end what a base model writes."""
    return SCRIPT_STOP if problem.tests.is_script else STOP


def system(problem: Problem) -> tuple[Message, ...]:
    """Return the benchmark's own system message, if it has one."""
    return (Message("system", problem.system),) if problem.system else ()


def question(problem: Problem, answer: str = ANSWER) -> str:
    """Return the problem as an instruction. ``answer`` says how to answer.

    Problems that are instructions already need no introduction.
    """
    prompt = problem.prompt.strip()
    if not _is_code(problem.prompt):
        return prompt if answer is ANSWER else f"{prompt}\n\n{answer}"
    begun = f"def {problem.tests.entry_point}(" in prompt
    return f"{COMPLETE if begun else WRITE} {answer}\n\n```python\n{prompt}\n```"


def _is_code(prompt: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in docstrings
            ast.parse(prompt)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: deep nesting
        return False
    return True


@dataclass(frozen=True, slots=True)
class SolvedExample:
    """A problem of assay's own, with two solutions and a plan for the first."""

    prompt: str
    body: str
    plan: str  # in comments
    composed: str  # a body with helpers inside

    @property
    def plain_solution(self) -> str:
        return self.prompt + self.body

    @property
    def planned_solution(self) -> str:
        return self.prompt + self.plan + self.body

    @property
    def composed_solution(self) -> str:
        return self.prompt + self.composed


TIDES = SolvedExample(
    prompt='''from typing import List, Tuple


def sailing_windows(levels: List[int], draught: int) -> List[Tuple[int, int]]:
    """Given the water level of every hour, find the spans of hours in which a boat with this
    draught floats: pairs of the first and the last hour of each span.
    >>> sailing_windows([3, 6, 7, 2, 8], 5)
    [(1, 2), (4, 4)]
    """
''',
    body="""    windows = []
    begun = None
    for hour, level in enumerate(levels):
        if level > draught and begun is None:
            begun = hour
        if level <= draught and begun is not None:
            windows.append((begun, hour - 1))
            begun = None
    if begun is not None:
        windows.append((begun, len(levels) - 1))
    return windows
""",
    plan="""    # Input: the level of every hour, the draught. Output: spans as pairs of hours.
    # 1. Keep the hour in which the current span began, if there is one.
    # 2. For every hour:
    #    if the boat floats and no span is open: open one.
    #    if it does not and one is open: close it with the hour before.
    # 3. After the loop: close a span that is still open with the last hour.
""",
    composed="""    def floats(hour):
        return 0 <= hour < len(levels) and levels[hour] > draught

    def last_of(first):
        while floats(first + 1):
            first += 1
        return first

    starts = [h for h in range(len(levels)) if floats(h) and not floats(h - 1)]
    return [(first, last_of(first)) for first in starts]
""",
)
LEDGER = SolvedExample(
    prompt='''def settle_ledger(entries: str) -> str:
    """A ledger is written as 'name+5 name-3 ...', one booking after the other. Return it with one
    booking for each name, in the order in which the names first appear, without those that end
    up even.
    >>> settle_ledger('ann+5 bob-2 ann-1 cid+4 cid-4')
    'ann+4 bob-2'
    """
''',
    body="""    balance = {}
    for entry in entries.split():
        name = entry.rstrip('0123456789')[:-1]
        balance[name] = balance.get(name, 0) + int(entry[len(name):])
    return ' '.join(f'{name}{amount:+d}' for name, amount in balance.items() if amount)
""",
    plan="""    # Input: bookings as text. Output: one booking a name, as text.
    # 1. For every booking: split it into the name and the signed amount.
    #    Add the amount to the name's balance; a new name begins at nothing.
    # 2. For every name in the order of appearance:
    #    if its balance is not even: write name, sign and amount.
    # 3. Join these with spaces.
""",
    composed="""    def parsed(entry):
        name = entry.rstrip('0123456789')[:-1]
        return name, int(entry[len(name):])

    def written(name, amount):
        return f'{name}{amount:+d}'

    balance = {}
    for name, amount in map(parsed, entries.split()):
        balance[name] = balance.get(name, 0) + amount
    return ' '.join(written(name, amount) for name, amount in balance.items() if amount)
""",
)
EXAMPLES = (TIDES, LEDGER)


def after_examples(problem: Problem, solved: Callable[[SolvedExample], str]) -> Prompt:
    """Return a prompt for a base model, which continues in the way of the examples."""
    begun = problem.begun or problem.prompt
    return Prompt(text="\n\n".join([*map(solved, EXAMPLES), begun]), stop=stop_words(problem))


def in_style(
    answer: str, solved: Callable[[SolvedExample], str]
) -> Callable[[Problem, PromptForm], Prompt]:
    """Return a strategy: tell a chat model to answer so, show a base model such examples."""

    def build(problem: Problem, form: PromptForm) -> Prompt:
        if form == "text":
            return after_examples(problem, solved)
        return Prompt(messages=(*system(problem), Message("user", question(problem, answer))))

    return build
