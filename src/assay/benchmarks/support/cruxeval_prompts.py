"""Ask CRUXEval's questions: as its authors do (prompts.py, MIT licence), and without examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.types import Message, Prompt, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.types import Problem, PromptForm

STOP = ("[/ANSWER]",)
SYSTEM = (
    "You are an expert at Python programming, code execution, test case generation, and fuzzing."
)


@dataclass(frozen=True, slots=True)
class Wording:
    """Texts for one of the two questions. ``PROBLEM`` stands for the code and its assertion."""

    direct: str  # upstream's, with two examples
    thought: str  # upstream's, with one example and its steps
    plain: str  # the form of the answer, without an example
    stepwise: str  # without an example, steps first


def build_strategies(wording: Wording) -> dict[str, Strategy]:
    """Return the strategies. A base model gets upstream's texts, since it needs the examples."""
    direct, thought = _fixed(wording.direct), _fixed(wording.thought)
    builders = {
        "standard": _by_form(_fixed(wording.plain), direct),
        "few-shot": direct,
        "scot": _by_form(_fixed(wording.stepwise), thought),
        "upstream": _with_system(direct),
        "upstream-cot": _with_system(thought),
    }
    versions = {"standard": 2}  # 2: shows the form of the answer
    return {name: Strategy(name, versions.get(name, 1), one) for name, one in builders.items()}


def _fixed(text: str) -> Callable[[Problem, PromptForm], Prompt]:
    def build(problem: Problem, form: PromptForm) -> Prompt:
        question = text.replace("PROBLEM", problem.prompt)
        if form == "text":
            return Prompt(text=question, stop=STOP)
        return Prompt(messages=(Message("user", question),))

    return build


def _by_form(
    chat: Callable[[Problem, PromptForm], Prompt], text: Callable[[Problem, PromptForm], Prompt]
) -> Callable[[Problem, PromptForm], Prompt]:
    return lambda problem, form: (chat if form == "chat" else text)(problem, form)


def _with_system(
    build: Callable[[Problem, PromptForm], Prompt],
) -> Callable[[Problem, PromptForm], Prompt]:
    """Add upstream's system message to a chat, and end the answer where upstream does."""

    def build_upstream(problem: Problem, form: PromptForm) -> Prompt:
        built = build(problem, form)
        messages = (Message("system", SYSTEM), *built.messages) if form == "chat" else ()
        return Prompt(messages, built.text, STOP)

    return build_upstream


OUTPUT = Wording(
    direct="""\
You are given a Python function and an assertion containing an input to the function. Complete \
the assertion with a literal (no unsimplified expressions, no function calls) containing the \
output when executing the provided code on the given input, even if the function is incorrect or \
incomplete. Do NOT output any extra information. Provide the full assertion with the correct \
output in [ANSWER] and [/ANSWER] tags, following the examples.

[PYTHON]
def f(n):
    return n
assert f(17) == ??
[/PYTHON]
[ANSWER]
assert f(17) == 17
[/ANSWER]

[PYTHON]
def f(s):
    return s + "a"
assert f("x9j") == ??
[/PYTHON]
[ANSWER]
assert f("x9j") == "x9ja"
[/ANSWER]

[PYTHON]
PROBLEM
[/PYTHON]
[ANSWER]
""",
    thought="""\
You are given a Python function and an assertion containing an input to the function. Complete \
the assertion with a literal (no unsimplified expressions, no function calls) containing the \
output when executing the provided code on the given input, even if the function is incorrect or \
incomplete. Do NOT output any extra information. Execute the program step by step before arriving \
at an answer, and provide the full assertion with the correct output in [ANSWER] and [/ANSWER] \
tags, following the examples.

[PYTHON]
def f(s):
    s = s + s
    return "b" + s + "a"
assert f("hi") == ??
[/PYTHON]
[THOUGHT]
Let's execute the code step by step:

1. The function f is defined, which takes a single argument s.
2. The function is called with the argument "hi", so within the function, s is initially "hi".
3. Inside the function, s is concatenated with itself, so s becomes "hihi".
4. The function then returns a new string that starts with "b", followed by the value of s (which \
is now "hihi"), and ends with "a".
5. The return value of the function is therefore "bhihia".
[/THOUGHT]
[ANSWER]
assert f("hi") == "bhihia"
[/ANSWER]

[PYTHON]
PROBLEM
[/PYTHON]
[THOUGHT]
""",
    plain="""\
What does this function return? Replace ?? in the assertion by a literal, so that it holds. Write \
the whole assertion between [ANSWER] and [/ANSWER], and nothing else.

If the function returned its argument and the assertion were assert f(17) == ??, this would be the \
whole answer:

[ANSWER]
assert f(17) == 17
[/ANSWER]

The function:

```python
PROBLEM
```""",
    stepwise="""\
What does this function return? First execute it step by step, and write down the values of its \
variables after each step. Then replace ?? in the assertion by a literal, so that it holds, and \
write the whole assertion between [ANSWER] and [/ANSWER].

```python
PROBLEM
```""",
)

INPUT = Wording(
    direct="""\
You will be given a function f and an output in the form f(??) == output. Find any input such \
that executing f on the input leads to the given output. There may be multiple answers, but you \
should only output one. In [ANSWER] and [/ANSWER] tags, complete the assertion with one such \
input that will produce the output when executing the function.

[PYTHON]
def f(my_list):
    count = 0
    for i in my_list:
        if len(i) % 2 == 0:
            count += 1
    return count
assert f(??) == 3
[/PYTHON]
[ANSWER]
assert f(["mq", "px", "zy"]) == 3
[/ANSWER]

[PYTHON]
def f(s1, s2):
    return s1 + s2
assert f(??) == "banana"
[/PYTHON]
[ANSWER]
assert f("ba", "nana") == "banana"
[/ANSWER]

[PYTHON]
PROBLEM
[/PYTHON]
[ANSWER]
""",
    thought="""\
You will be given a function f and an output in the form f(??) == output. Your task is to find \
any input such that executing f on the input leads to the given output. There may be multiple \
answers, but only output one. First, think step by step. You MUST surround the answer with \
[ANSWER] and [/ANSWER] tags. Express your answer as a passing assertion containing the input and \
the given output.

[PYTHON]
def f(x):
    return x + 1
assert f(??) == 17
[/PYTHON]
[THOUGHT]
To find an input such that executing f on the input leads to the given output, we can work \
backwards from the given assertion. We know that f(??) == 17.\x20

Since the function f(x) returns x + 1, for f(??) to be equal to 17, the value of ?? should be \
16.\x20
[/THOUGHT]
[ANSWER]
assert f(16) == 17
[/ANSWER]

[PYTHON]
PROBLEM
[/PYTHON]
[THOUGHT]
""",
    plain="""\
Find an input for this function. Replace ?? in the assertion by one or more arguments, so that it \
holds. Write the whole assertion between [ANSWER] and [/ANSWER], and nothing else.

If the function added its two arguments and the assertion were assert f(??) == 7, this would be a \
whole answer:

[ANSWER]
assert f(3, 4) == 7
[/ANSWER]

The function:

```python
PROBLEM
```""",
    stepwise="""\
Find an input for this function. First work backwards from the output, step by step. Then replace \
?? in the assertion by one or more arguments, so that it holds, and write the whole assertion \
between [ANSWER] and [/ANSWER].

```python
PROBLEM
```""",
)
