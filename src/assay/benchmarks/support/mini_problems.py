"""The problems of ``mini`` as text: each has a prompt, a body that solves it, and tests."""

from __future__ import annotations

import re

PROBLEMS_TEXT = '''\
def celsius_to_fahrenheit(celsius: float) -> float:
    """Convert a temperature from degrees Celsius to degrees Fahrenheit."""
--- body
    return celsius * 9 / 5 + 32
--- tests
assert celsius_to_fahrenheit(0) == 32
assert celsius_to_fahrenheit(100) == 212
assert abs(celsius_to_fahrenheit(-40) + 40) < 1e-9
=== problem
def initials(full_name: str) -> str:
    """Return the upper-case first letters of all words of a name.

    >>> initials("ada king lovelace")
    'AKL'
    """
--- body
    return "".join(word[0].upper() for word in full_name.split())
--- tests
assert initials("ada king lovelace") == "AKL"
assert initials("  grace   Hopper ") == "GH"
assert initials("") == ""
=== problem
def second_largest(numbers: list[int]) -> int | None:
    """Return the second largest distinct number, or None if there is none."""
--- body
    distinct = sorted(set(numbers))
    return distinct[-2] if len(distinct) > 1 else None
--- tests
assert second_largest([3, 1, 2]) == 2
assert second_largest([5, 5, 4]) == 4
assert second_largest([7, 7]) is None
assert second_largest([]) is None
=== problem
def leap_years_between(first: int, last: int) -> int:
    """Count the leap years of the Gregorian calendar from first to last, both included."""
--- body
    return sum(
        year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) for year in range(first, last + 1)
    )
--- tests
assert leap_years_between(2000, 2000) == 1
assert leap_years_between(1900, 1900) == 0
assert leap_years_between(1995, 2024) == 8
assert leap_years_between(2021, 2020) == 0
=== problem
def interleave(left: list, right: list) -> list:
    """Take items from left and right in turn, starting with left; append what is left over.

    >>> interleave([1, 2, 3], ["a"])
    [1, 'a', 2, 3]
    """
--- body
    common = min(len(left), len(right))
    paired = [item for pair in zip(left, right) for item in pair]
    return paired + left[common:] + right[common:]
--- tests
assert interleave([1, 2, 3], ["a"]) == [1, "a", 2, 3]
assert interleave([], [1, 2]) == [1, 2]
assert interleave([1, 3], [2, 4]) == [1, 2, 3, 4]
=== problem
def word_lengths(text: str) -> dict[int, int]:
    """Map each word length that occurs in the text to the number of words of that length."""
--- body
    counts: dict[int, int] = {}
    for word in text.split():
        counts[len(word)] = counts.get(len(word), 0) + 1
    return counts
--- tests
assert word_lengths("a bb cc d") == {1: 2, 2: 2}
assert word_lengths("") == {}
assert word_lengths("three seven") == {5: 2}
=== problem
def is_staircase(heights: list[int]) -> bool:
    """Tell whether each height is exactly one more than the height before it."""
--- body
    return all(after - before == 1 for before, after in zip(heights, heights[1:]))
--- tests
assert is_staircase([1, 2, 3]) is True
assert is_staircase([1, 3]) is False
assert is_staircase([4]) is True
assert is_staircase([2, 1]) is False
=== problem
def run_lengths(text: str) -> list[tuple[str, int]]:
    """Group equal neighbouring characters into (character, count) pairs.

    >>> run_lengths("aab")
    [('a', 2), ('b', 1)]
    """
--- body
    runs: list[tuple[str, int]] = []
    for character in text:
        if runs and runs[-1][0] == character:
            runs[-1] = (character, runs[-1][1] + 1)
        else:
            runs.append((character, 1))
    return runs
--- tests
assert run_lengths("aab") == [("a", 2), ("b", 1)]
assert run_lengths("") == []
assert run_lengths("abba") == [("a", 1), ("b", 2), ("a", 1)]
=== problem
def clamp_all(values: list[float], low: float, high: float) -> list[float]:
    """Return the values with everything below low raised to low, above high cut to high."""
--- body
    return [min(max(value, low), high) for value in values]
--- tests
assert clamp_all([-1, 0.5, 9], 0, 1) == [0, 0.5, 1]
assert clamp_all([], 0, 1) == []
assert clamp_all([2, 2], 2, 2) == [2, 2]
=== problem
def shared_prefix(words: list[str]) -> str:
    """Return the longest text that all words start with; an empty list has none."""
--- body
    if not words:
        return ""
    shortest = min(words, key=len)
    for length in range(len(shortest), 0, -1):
        if all(word.startswith(shortest[:length]) for word in words):
            return shortest[:length]
    return ""
--- tests
assert shared_prefix(["interval", "internal", "into"]) == "int"
assert shared_prefix(["abc"]) == "abc"
assert shared_prefix(["x", "y"]) == ""
assert shared_prefix([]) == ""
=== problem
def digital_root(number: int) -> int:
    """Sum the decimal digits of a non-negative number, again and again, until one digit remains."""
--- body
    while number > 9:
        number = sum(int(digit) for digit in str(number))
    return number
--- tests
assert digital_root(0) == 0
assert digital_root(9) == 9
assert digital_root(987654321) == 9
assert digital_root(38) == 2
=== problem
def rotate_left(items: list, steps: int) -> list:
    """Move the first items to the end, steps times; steps may exceed the length or be negative."""
--- body
    if not items:
        return []
    cut = steps % len(items)
    return items[cut:] + items[:cut]
--- tests
assert rotate_left([1, 2, 3], 1) == [2, 3, 1]
assert rotate_left([1, 2, 3], 5) == [3, 1, 2]
assert rotate_left([1, 2, 3], -1) == [3, 1, 2]
assert rotate_left([], 4) == []
=== problem
def parse_duration(text: str) -> int:
    """Return the seconds of a text such as "1h30m", "45s" or "2h5s" (units h, m, s in this order).

    >>> parse_duration("1h30m")
    5400
    """
--- body
    seconds, number = 0, ""
    for character in text:
        if character.isdigit():
            number += character
        else:
            seconds += int(number) * {"h": 3600, "m": 60, "s": 1}[character]
            number = ""
    return seconds
--- tests
assert parse_duration("1h30m") == 5400
assert parse_duration("45s") == 45
assert parse_duration("2h5s") == 7205
assert parse_duration("") == 0
=== problem
def transpose(rows: list[list[int]]) -> list[list[int]]:
    """Swap rows and columns of a rectangular table."""
--- body
    return [list(column) for column in zip(*rows)]
--- tests
assert transpose([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [2, 5], [3, 6]]
assert transpose([]) == []
assert transpose([[7]]) == [[7]]
=== problem
def balanced(text: str) -> bool:
    """Tell whether the round and square brackets in the text are properly nested and closed."""
--- body
    open_brackets = []
    for character in text:
        if character in "([":
            open_brackets.append(character)
        elif character in ")]":
            if not open_brackets or open_brackets.pop() + character not in ("()", "[]"):
                return False
    return not open_brackets
--- tests
assert balanced("(a[b]c)") is True
assert balanced("([)]") is False
assert balanced("((") is False
assert balanced("]") is False
assert balanced("") is True
=== problem
def collatz_steps(number: int) -> int:
    """Count the steps until a positive number becomes 1: halve it if even, else 3 * number + 1."""
--- body
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps
--- tests
assert collatz_steps(1) == 0
assert collatz_steps(6) == 8
assert collatz_steps(27) == 111
=== problem
def merge_sorted(left: list[int], right: list[int]) -> list[int]:
    """Merge two ascending lists into one ascending list; the arguments stay unchanged."""
--- body
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]
--- tests
first, second = [1, 4, 9], [2, 4, 4]
assert merge_sorted(first, second) == [1, 2, 4, 4, 4, 9]
assert (first, second) == ([1, 4, 9], [2, 4, 4])
assert merge_sorted([], [1]) == [1]
assert merge_sorted([], []) == []
=== problem
def most_common_word(text: str) -> str:
    """Return the word that occurs most often, ignoring case, in lower case; the first of equals."""
--- body
    words = text.lower().split()
    return max(words, key=words.count)
--- tests
assert most_common_word("The cat and the dog") == "the"
assert most_common_word("b a") == "b"
assert most_common_word("x Y y") == "y"
=== problem
def binary_gap(number: int) -> int:
    """Return the longest run of zeros between two ones in the binary form of a positive number."""
--- body
    return max(map(len, bin(number)[2:].strip("0").split("1")))
--- tests
assert binary_gap(9) == 2
assert binary_gap(529) == 4
assert binary_gap(15) == 0
assert binary_gap(32) == 0
=== problem
from typing import Callable


def make_counter(step: int = 1) -> Callable[[], int]:
    """Return a function that returns step, 2 * step, 3 * step ... on successive calls."""
--- body
    total = 0

    def count() -> int:
        nonlocal total
        total += step
        return total

    return count
--- tests
one, five = make_counter(), make_counter(5)
assert [one(), one(), one()] == [1, 2, 3]
assert [five(), five()] == [5, 10]
assert one() == 4
'''


def read_problems() -> list[tuple[str, str, str, str]]:
    """Return the entry point, prompt, body and tests of every problem."""
    problems = []
    for problem in PROBLEMS_TEXT.split("=== problem\n"):
        prompt, body, tests = re.split("^--- (?:body|tests)\n", problem, flags=re.M)
        problems.append((re.findall(r"^def (\w+)", prompt, re.M)[-1], prompt, body, tests))
    return problems
