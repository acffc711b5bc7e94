"""Prompts of benchmarks' authors, text by text, verified against upstream's sources."""

from __future__ import annotations

import hashlib
import json

import pytest

from assay import benchmarks
from assay.errors import DataError, UsageError
from assay.extract import extract
from assay.prompts import find_strategy
from assay.types import Benchmark, Message, Prompt, PromptForm

STOP = ("<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(")
PREFILL = """\
Below is a Python script with a self-contained function that solves the problem and passes \
corresponding tests:
```python
"""


def loaded(name: str) -> Benchmark:
    try:
        return benchmarks.load(name)
    except DataError as error:
        pytest.skip(f"needs the data of {name}: {error}")


def upstream(benchmark: Benchmark, form: PromptForm, number: int = 0) -> Prompt:
    return find_strategy("upstream", benchmark).build(benchmark.problems[number], form)


@pytest.mark.parametrize("kind", ["complete", "instruct"])
def test_bigcodebench(kind: str) -> None:
    """generate.py and provider/utility.py of BigCodeBench 0.2.3."""
    benchmark = loaded(f"bigcodebench-hard-{kind}")
    problem = benchmark.problems[0]
    shown = problem.prompt.strip()
    question = f"""\
Please provide a self-contained Python script that solves the following problem in a markdown code \
block:
{f"```{chr(10)}{shown}{chr(10)}```" if kind == "complete" else shown}
"""
    assert upstream(benchmark, "chat") == Prompt(
        (Message("user", question),), stop=(*STOP, "\n```\n"), prefill=PREFILL
    )


def test_bigcodebench_for_base_models() -> None:
    """Upstream's direct completion, which there is for code alone."""
    complete = loaded("bigcodebench-hard-complete")
    more = ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")
    assert upstream(complete, "text") == Prompt(text=complete.problems[0].prompt, stop=STOP + more)
    with pytest.raises(UsageError, match="upstream does not ask base models by instructions"):
        upstream(loaded("bigcodebench-hard-instruct"), "text")


@pytest.mark.parametrize("ends", ["", "\n```", "\n```\nIt adds numbers:\n```python\nf(1)\n```"])
def test_a_prefilled_answer_is_extracted(mini: Benchmark, ends: str) -> None:
    """Engines join the prefill and what the model adds, so that the code block is open."""
    problem = mini.problems[0]
    code = problem.reference.strip()
    found = extract(f"{PREFILL}{code}{ends}", problem, "chat")
    assert found.code.strip() == code


# Computed from all problems with upstream's own functions: ``make_raw_chat_prompt`` of EvalPlus
# 0.3.1 and BigCodeBench 0.2.3 (chats, with the prefill), ``prompts.py`` of CRUXEval (texts).
DIGESTS = {
    ("humaneval", "upstream", "chat"): "46e1a73abf56d2ec",
    ("humanevalplus", "upstream", "chat"): "068b1af39cf372d8",
    ("mbppplus", "upstream", "chat"): "bb6c3b6b9eab45ac",
    ("bigcodebench-complete", "upstream", "chat"): "72a19f401a62764d",
    ("bigcodebench-instruct", "upstream", "chat"): "30c3cd3fc5b06e8f",
    ("cruxeval-o", "upstream", "text"): "4428e0b3828c8f2d",
    ("cruxeval-o", "upstream-cot", "text"): "9c7b6a9da62928c1",
    ("cruxeval-i", "upstream", "text"): "e646086c0a1a8e4d",
    ("cruxeval-i", "upstream-cot", "text"): "d955b9d486602669",
}


@pytest.mark.parametrize(("name", "strategy", "form"), DIGESTS)
def test_texts_are_those_of_upstreams_code(name: str, strategy: str, form: PromptForm) -> None:
    benchmark = loaded(name)
    build = find_strategy(strategy, benchmark).build
    prompts = [build(problem, form) for problem in benchmark.problems]
    texts = [_join(prompt) if form == "chat" else prompt.text for prompt in prompts]
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]
    assert digest == DIGESTS[name, strategy, form]


def _join(prompt: Prompt) -> str:
    said = [*prompt.messages, Message("assistant", prompt.prefill)]
    return "".join(f"<{message.role}>{message.content}" for message in said)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("humaneval", ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")),
        ("humanevalplus", ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")),
        ("mbppplus", ('\n"""', "\nassert")),
    ],
)
def test_evalplus_for_base_models(name: str, more: tuple[str, ...]) -> None:
    benchmark = loaded(name)
    text = f"{benchmark.problems[0].prompt.strip()}\n"
    assert upstream(benchmark, "text") == Prompt(text=text, stop=STOP + more)
    assert upstream(benchmark, "chat").stop == (*STOP, "\n```\n")


TASK_2 = """\
You are an expert Python programmer, and here is your task: Write a function to find the similar \
elements from the given two tuple lists. Your code should pass these tests:

assert similar_elements((3, 4, 5, 6),(5, 7, 4, 10)) == (4, 5)
assert similar_elements((1, 2, 3, 4),(5, 4, 3, 7)) == (3, 4)
assert similar_elements((11, 12, 14, 13),(17, 15, 14, 13)) == (13, 14)
[BEGIN]
def similar_elements(test_tup1, test_tup2):
  res = tuple(set(test_tup1) & set(test_tup2))
  return (res)\x20
[DONE]
"""
TASK_11 = """\
You are an expert Python programmer, and here is your task: Write a python function to remove \
first and last occurrence of a given character from the string. Your code should pass these tests:

assert remove_Occ("hello","l") == "heo"
assert remove_Occ("abcda","a") == "bcd"
assert remove_Occ("PHP","P") == "H"
[BEGIN]
"""


def test_mbpp_asks_with_three_solved_tasks() -> None:
    """The paper's format, from the README of google-research/mbpp: tasks 2, 3 and 4 come first."""
    benchmark = loaded("mbpp")
    found = upstream(benchmark, "text")
    assert found.text.startswith(f"{TASK_2}You are an expert Python programmer, ")
    assert found.text.endswith(f"[DONE]\n{TASK_11}")
    assert found.text.count("[DONE]") == 3
    assert found.stop == ("[DONE]",)
    assert upstream(benchmark, "chat") == Prompt((Message("user", found.text),), stop=("[DONE]",))


def test_mbpp_shows_no_task_its_own_answer() -> None:
    first, second, *_ = loaded("mbpp-prompt").problems
    assert (first.task_id, second.task_id) == ("Mbpp/1", "Mbpp/2")
    texts = [upstream(loaded("mbpp-prompt"), "text", number).text for number in range(2)]
    assert [text.count("[DONE]") for text in texts] == [3, 2]
    assert second.reference.strip() not in texts[1]


def test_leetcodedataset_sends_the_datas_query() -> None:
    benchmark = loaded("leetcodedataset")
    query = upstream(benchmark, "text").text
    assert query.startswith("You are an expert Python programmer. You will be given a question ")
    assert query.endswith("```\n\n### Answer: (use the provided format with backticks)\n")
    assert query.strip() == benchmark.problems[0].prompt
    assert upstream(benchmark, "chat") == Prompt((Message("user", query),))
