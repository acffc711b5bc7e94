"""Compare results as EvoEval does: its ``is_equal``, and the tasks with more than one answer.

The code runs next to the expected values, never in a program's process. Three things differ from
upstream (docs/benchmarks.md). Floats are compared one by one: numpy's broadcasting makes ``[]``
equal to every float there. A path may not leave its maze by negative indices. HumanEval/32 calls
the polynomial with the right arguments, which upstream does not, so that no program passes there.
"""

from __future__ import annotations

# Inputs are Python expressions in the data file, which is pinned by its digest.
READ_ARGUMENTS = """
def read_arguments(text):
    return eval(f"[{text}]", {})
"""

MATCHER = '''
import math


def matcher():
    return is_equal


def is_equal(arguments, expected, got):
    return equal(expected, got)


def kind(value):
    """Name the type as upstream does: a sequence of floats only, even an empty one, is floats."""
    if value is None or isinstance(value, (bool, int, str)):
        return bool if isinstance(value, bool) else int if isinstance(value, int) else type(value)
    if isinstance(value, float):
        return float
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, float) for item in value):
            return "floats"
        return tuple if isinstance(value, tuple) else list
    for base in (dict, set, type):
        if isinstance(value, base):
            return base
    return "other"


def equal(expected, got):
    if kind(expected) != kind(got):
        return False
    if isinstance(expected, float):
        return close(expected, got)
    if isinstance(expected, (list, tuple)):
        same = close if kind(expected) == "floats" else equal
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, dict):
        return len(expected) == len(got) and all(
            key in got and equal(value, got[key]) for key, value in expected.items()
        )
    return expected == got


def close(expected, got):
    """Compare as numpy.allclose does with atol=1e-6 and equal_nan=True."""
    if expected == got or (expected != expected and got != got):
        return True
    if not (math.isfinite(expected) and math.isfinite(got)):
        return False
    return abs(expected - got) <= 1e-6 + 1e-5 * abs(got)
'''

_POLYNOMIAL = """
import math


def value(coefficients, x):
    return sum(c * math.pow(x, i) for i, c in enumerate(coefficients))


def matcher():
    return matches
"""

# The tolerance of HumanEval+: the reference itself stops at 1e-5.
# Since Python 3.12, a value must only be as good as the reference's, as in HumanEval+.
ZERO = f"""{_POLYNOMIAL}

def matches(arguments, expected, got):
    found, reference = (abs(value(arguments[0], x)) for x in (got, expected))
    return found <= max(1e-4, reference)
"""

# Only the first coefficient and those at odd places are given; the others are 0.
SUBTLE_ZERO = f"""{_POLYNOMIAL}

def matches(arguments, expected, got):
    first, *others = arguments[0]
    coefficients = [first, others[0]]
    for coefficient in others[1:]:
        coefficients += [0, coefficient]
    return abs(value(coefficients, got)) <= 1e-6
"""

ZERO_IN_INTERVAL = f"""{_POLYNOMIAL}

def matches(arguments, expected, got):
    coefficients, (start, end) = arguments
    if expected is None:
        return got is None
    return start <= got <= end and abs(value(coefficients, got)) <= 2e-2
"""

PALINDROME = """
def matcher():
    return matches


def matches(arguments, expected, got):
    folded = got.lower()
    return len(got) == len(expected) and got.startswith(arguments[0]) and folded == folded[::-1]
"""

MOVES = """
STEPS = {"right": (0, 1), "left": (0, -1), "up": (-1, 0), "down": (1, 0)}


def matcher():
    return matches


def matches(arguments, expected, got):
    maze, start, end = arguments
    if not expected:
        return got == []
    row, column = start
    for move in got:
        row, column = row + STEPS[move][0], column + STEPS[move][1]
        if row < 0 or column < 0 or maze[row][column] == 1:
            return False
    return (row, column) == end
"""

PATH = """
def matcher():
    return matches


def matches(arguments, expected, got):
    maze, start, end = arguments
    if not expected:
        return got == []
    if got[0] != start or got[-1] != end:
        return False
    for row, column in got:
        if row < 0 or column < 0 or maze[row][column] == 0:
            return False
    steps = zip(got, got[1:])
    return all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in steps)
"""

PRODUCT = """
def matcher():
    return matches


def matches(arguments, expected, got):
    numbers, target = arguments
    if expected == "No magic today":
        return got == expected
    i, j = got
    right = 0 <= i < j < len(numbers) and numbers[i] * numbers[j] == target
    return right and isinstance(got, tuple)
"""

# By set and task.
SPECIAL = {
    ("verbose", "HumanEval/32"): ZERO,
    ("concise", "HumanEval/32"): ZERO,
    ("subtle", "EvoEval/32"): SUBTLE_ZERO,
    ("difficult", "EvoEval/10"): PALINDROME,
    ("difficult", "EvoEval/32"): ZERO_IN_INTERVAL,
    ("creative", "EvoEval/26"): MOVES,
    ("creative", "EvoEval/30"): PATH,
    ("creative", "EvoEval/69"): PRODUCT,
}
