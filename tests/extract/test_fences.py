"""Markdown's code blocks."""

from __future__ import annotations

from assay.extract.rules.fences import FencedBlock, fenced_blocks


def test_languages_and_characters() -> None:
    for fence, info in (("```", "python"), ("```", ""), ("~~~", "py"), ("````", " python3 ")):
        assert fenced_blocks(f"a\n{fence}{info}\nx\n{fence}\nb") == [
            FencedBlock("x\n", closed=True)
        ]


def test_a_longer_fence_holds_shorter_ones() -> None:
    text = "````md\n```python\nx\n```\n````"
    assert fenced_blocks(text) == [FencedBlock("```python\nx\n```\n", closed=True)]


def test_several_and_one_that_is_cut_off() -> None:
    text = "```sh\npip\n```\nthen\n```python\nx = 1\ny"
    assert fenced_blocks(text) == [
        FencedBlock("pip\n", closed=True),
        FencedBlock("x = 1\ny\n", closed=False),
    ]


def test_fences_that_share_a_line_with_text() -> None:
    assert fenced_blocks("Here it is: ```python\nx\n```") == [FencedBlock("x\n", closed=True)]
    assert fenced_blocks("```python\nreturn x```\nbye") == [FencedBlock("return x\n", closed=True)]
    assert fenced_blocks("Use ``` to begin and ``` to end.\n") == []


def test_in_a_list_a_block_is_indented() -> None:
    text = "1. so:\n   ```python\n   x\n   ```\n2. done"
    assert fenced_blocks(text) == [FencedBlock("   x\n", closed=True)]


def test_a_fence_in_a_docstring_ends_nothing() -> None:
    code = 'def f():\n    """\n    ```\n    f()\n    ```\n    """\n'
    assert fenced_blocks(f"```python\n{code}```") == [FencedBlock(code, closed=True)]
