"""Answers that are not programs: where they are found in a text, and which are refused."""

from __future__ import annotations

import ast

import pytest

from assay.data import codec, plain
from assay.extract import extract
from assay.extract.answers import Decision, Execution, answer_kinds
from assay.extract.answers._places import UnparsableError
from assay.extract.answers.call import parse_call
from assay.extract.workers import ExtractionRequest, Extractor
from assay.types import Answer, Cases, Problem, Program, Tests

# Calls its first and its last parameter.
CODE = "data = [1, 2]\ndef f(x, y=0, n=None):\n    return n(x) if n else x(y)\n"


def problem(kind: str, expected: object = 17) -> Problem:
    found = {"base": [plain.encode(expected)]}
    cases = Cases({"base": [[]]}, found, codec.digest(found))
    preamble = CODE if kind == "call" else ""
    tests = Tests("answer", "", preamble, "separated", cases, answer=Answer(kind, "f"))
    return Problem("t", "", "", tests)


LITERALS = (
    ("17", "17", "whole"),
    (" 17\n", "17", "whole"),
    ("assert f(17) == 17", "17", "whole"),
    ("assert f(17) == 17  # done", "17", "whole"),
    ("assert 17 == f(17)", "17", "whole"),
    ("f(17) == 17", "17", "whole"),
    ("assert f('==') == '=='", "'=='", "whole"),
    ("'a == b'", "'a == b'", "whole"),
    ("assert f(1) == ('a', 1), ('b', 2)", "('a', 1)", "whole"),
    ("[THOUGHT]x[/THOUGHT]\n[ANSWER]\nassert f(1) == [1,\n 2]\n[/ANSWER]", "[1,\n 2]", "tags"),
    ("assert f(1) == 2\n[/ANSWER]\n\n[PYTHON]\ndef g(): ...", "2", "tags"),
    ("I use [ANSWER] and [/ANSWER] tags.\n[ANSWER]3[/ANSWER]", "3", "tags"),
    ("[ANSWER]3[/ANSWER] or [ANSWER]4[/ANSWER]", "3", "tags"),
    ("[ANSWER]\n```python\nassert f(1) == 5\n```\n[/ANSWER]", "5", "tags"),
    ("[ANSWER]`'x'`[/ANSWER]", "'x'", "tags"),
    ("It is\n```python\nassert f(1) == {'a': 1}\n```\nDone.", "{'a': 1}", "block"),
    ("First.\nassert f(1) == 1\nNo:\nassert f(1) == 2\nYes!", "2", "assertion"),
    ("Some thoughts.\nSo it is:\n[1, 2]", "[1, 2]", "line"),
    ("<think>[ANSWER]1[/ANSWER]</think>[ANSWER]2[/ANSWER]", "2", "tags"),
    ("[ANSWER]assert f(17) == f( 17 )[/ANSWER]", "assert f(17) == f( 17 )", "tags"),
    ("[ANSWER]\nno idea\n[/ANSWER]", "no idea", "tags"),
)


@pytest.mark.parametrize(("text", "answer", "rule"), LITERALS)
def test_a_literal_is_found(text: str, answer: str, rule: str) -> None:
    assert extract(text, problem("literal"), "text") == Program(answer, rule)


@pytest.mark.parametrize("text", ["", "I cannot know.", "f( 17 )", "x == y", "[ANSWER][/ANSWER]"])
def test_a_text_without_an_answer(text: str) -> None:
    with Extractor(1) as extractor:
        ((_, found),) = extractor.in_order(
            [("", ExtractionRequest(text, problem("literal"), "chat"))]
        )
    assert (found.reason, found.detail) == ("no-code", "the text has no answer")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("f(1)", "f(1)"),
        ("assert f(1, y=2) == 3", "f(1, y=2)"),
        ("assert 3 == f(1)", "f(1)"),
        ("assert f(1), 'message'", "assert f(1), 'message'"),
        ("[ANSWER]\nassert f([1, 2], lambda x: x.sort()) == [1]\n[/ANSWER]",
         "f([1, 2], lambda x: x.sort())"),
        ("[ANSWER]assert f('a == b') == 'x'[/ANSWER]", "f('a == b')"),
        ("[ANSWER]assert f('x') == unclosed([/ANSWER]", "f('x')"),
        ("```python\nassert f(data[:]) == 1\n```", "f(data[:])"),
    ],
)  # fmt: skip
def test_a_call_is_found(text: str, answer: str) -> None:
    expected = "none" if answer == text and "message" in text else answer
    found = extract(text, problem("call"), "chat")
    assert found.code == ("" if expected == "none" else expected)


def check(kind: str, answer: str, expected: object = 17) -> Decision | Execution:
    return answer_kinds.get(kind).check(answer, problem(kind, expected).tests)


@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        ("17", 17, "passed"),
        (" 17 ", 17, "passed"),
        ("17.0", 17, "passed"),  # as == does, like upstream
        ("True", 1, "passed"),
        ("{'b': 1, 'a': (2,)}", {"a": (2,), "b": 1}, "passed"),
        ("'a' 'b'", "ab", "passed"),
        ("set()", set(), "passed"),
        ("-1", -1, "passed"),
        ("18", 17, "wrong-answer"),
        ("'17'", 17, "wrong-answer"),
        ("[1, 2]", (1, 2), "wrong-answer"),
        ("('a', 1), ('b', 2)", (("a", 1), ("b", 2)), "wrong-answer"),  # the second is a message
        ("", 17, "unparsable"),
        ("17 or 18", 17, "unparsable"),
        ("17 == 17", 17, "unparsable"),
        ("17\nimport os", 17, "unparsable"),
        ("17; import os", 17, "unparsable"),
        ("10 + 7", 17, "unparsable"),
        ("f(17)", 17, "unparsable"),
        ("f( 17 )", 17, "unparsable"),
        ("[17][0]", 17, "unparsable"),
        ("x", 17, "unparsable"),
        ("'unclosed", 17, "unparsable"),
        ("\0", 17, "unparsable"),
        ("9" * 5000, 17, "unparsable"),  # more digits than Python converts
        ("1" + "0" * 20_000, 17, "unparsable"),
        ("[" * 300 + "]" * 300, 17, "unparsable"),
        ("-" * 9000 + "1", 17, "unparsable"),
        ("0x" + "f" * 9000, 17, "wrong-answer"),  # can be parsed, but not written in decimals
        ("[{1: 0x" + "f" * 9000 + "}]", 17, "wrong-answer"),
        ("(" * 150 + "17" + ")" * 150, 17, "passed"),
    ],
)
def test_a_literal_is_compared(answer: str, expected: object, reason: str) -> None:
    found = check("literal", answer, expected)
    assert isinstance(found, Decision)
    assert (found.reason, found.passed) == (reason, reason == "passed"), found.detail
    assert len(found.detail) < 700
    assert max(len(found.expected or ""), len(found.actual or "")) <= 200


@pytest.mark.parametrize(
    "answer",
    [
        "f(1)", "f()", "f(-1.5, 'x', [(1, {2, 3}), {'k': None}])", "f(1, x=2)", "f(1), 'message'",
        "f(lambda x, y=1: x + y)", "f(n=lambda x: x.sort() or len(x))", "f(set(), 1 + 2j)",
        "f(sorted)", "f(len, n=list.reverse)", "f({3: False}.get, 3)",
    ],
)  # fmt: skip
def test_calls_with_literals_are_programs(answer: str) -> None:
    found = check("call", answer)
    assert isinstance(found, Execution), found
    assert found.code.startswith("def answer():\n    return f(")
    assert not found.arguments
    compile(found.code, "", "exec")


@pytest.mark.parametrize(
    "answer",
    [
        "f(*[1, 2])", "f(**{'x': 1})", "f(f(1))", "f([x * 2 for x in range(3)])",
        "f('a'.upper(), ''.join(['b'] * 3))", "f(dict(a=1))", "f(data[0])", "f(f'{1}')",
        "f({k: v for k, v in zip('ab', [1, 2])})", "f(int('7'))", "f(1, *[2], x=len('ab'), **{})",
        "f(sorted([2, 1], key=lambda x: -x))", "f(not 1, 1 if 2 else 3)", "f([lambda x: x][0])",
        "f(lambda x: x, [1] * 3)", "f(1 + 1, n=lambda x: x)", "f(sorted, [1] * 3)", "f(0, len)",
    ],
)  # fmt: skip
def test_other_arguments_are_computed_apart_from_the_call(answer: str) -> None:
    found = check("call", answer)
    assert isinstance(found, Execution), found
    assert found.arguments.startswith("def answer():\n    return [[")
    assert found.code.startswith("def answer(positional, named):\n")
    assert found.code.endswith("    return f(*positional, **named)\n")
    compile(found.arguments, "", "exec")
    tree = ast.parse(found.code)
    left = {type(node) for node in ast.walk(tree) if isinstance(node, ast.expr)}
    assert left <= {ast.Name, ast.Attribute, ast.Call, ast.Starred, ast.Lambda, ast.Constant,
                    ast.Subscript}  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        "f([0 for g in [lambda: 0] for g.lower in [lambda: 55]])", "f([0 for [][0] in [1]])",
        "f({1: 2 for {}['a'] in [1]})", "f([1 for (a, b.count) in [(1, 2)]])",
        "f(1, lambda x: x)", "f(y=lambda x: x)", "f(lambda x: f(x))", "f(lambda x: data)",
        "f(*[1], lambda x: x)", "f((lambda x: x).__call__)", "f([x := 1])",
    ],
)  # fmt: skip
def test_what_an_argument_may_not_be(answer: str) -> None:
    found = check("call", answer)
    assert isinstance(found, Decision), found
    assert found.reason == "unparsable"


def test_a_hostile_text_ends_soon() -> None:
    for text in ("[ANSWER]1+" * 90_000, "assert 1 +\n" * 90_000, "```\n1 +\n```\n" * 50_000):
        assert extract(text, problem("literal"), "text").rule in ("none", "tags")


@pytest.mark.parametrize(
    "argument",
    [
        "[lambda eval: 0, eval('1')]", "(lambda x=(lambda eval: 0): eval('1'))()",
        "(lambda *eval, y=eval: y)()", "[eval for (eval, *b) in [[1]]] + [eval('1')]",
        "[x for x in eval('1') for eval in x]", "[eval for x in [1]]",
    ],
)  # fmt: skip
def test_a_name_is_bound_in_its_own_scope_only(argument: str) -> None:
    with pytest.raises(UnparsableError, match="the name eval is not allowed"):
        parse_call(f"f({argument})", "f", frozenset("f"))


@pytest.mark.parametrize(
    "argument",
    [
        "[x * 2 for x in range(3)]", "{k: v for k, v in zip('ab', [1, 2])}",
        "[y for x in [[1]] for y in x if y]", "(lambda a, *b, c=2, **d: (a, b, c, d))(1)",
        "[(lambda z: z + x)(1) for x in [1]]", "*(i for i in [1]), f'{1:{2}}'",
    ],
)  # fmt: skip
def test_names_of_a_scope_may_be_used_in_it(argument: str) -> None:
    """Python 3.12 and later have no symbol tables of comprehensions."""
    assert parse_call(f"f({argument})", "f", frozenset("f")).args
