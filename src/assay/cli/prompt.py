"""``assay prompt``."""

from __future__ import annotations

from typing import Any

import click

from assay.cli._groups import MODEL, PROMPT, GroupedCommand, option
from assay.cli._option_sets import model_options, prompt_options
from assay.cli._options import STRATEGIES, as_json, data_dir, list_choices
from assay.cli._output import Styled, echo, echo_json, echo_text
from assay.cli._progress import ProgressDisplay
from assay.pipeline.prompting import ProblemPrompt, PromptConfig, build_problem_prompt
from assay.prompts import name_parts


@click.command(cls=GroupedCommand)
@click.argument("benchmark")
@click.argument("task")
@option(
    "--strategy",
    f"Prompt strategy: {list_choices(STRATEGIES)}; upstream and upstream-cot if the benchmark "
    "has them. default is the benchmark's own choice.",
    group=PROMPT, of="prompt", default="default",
)  # fmt: skip
@option(
    "--model",
    "Model to render the prompt for, with its tokens. Default: none, which prints the messages.",
    group=MODEL,
    default="",
)
@prompt_options
@model_options
@data_dir
@as_json
def prompt(benchmark: str, task: str, as_json: bool, **settings: Any) -> None:
    """Print exactly what a model is sent for TASK of BENCHMARK.

    \b
    Examples:
      assay prompt humaneval 0 --strategy scot
      assay prompt humaneval HumanEval/0 --model default
    """
    config = PromptConfig(benchmark, task, **settings)
    with ProgressDisplay(benchmark, quiet=as_json) as display:
        built = build_problem_prompt(config, display)
    if as_json:
        echo_json(built)
        return
    for name, text in _parts(built):
        echo((Styled(f"--- {name}", bold=True),))
        echo_text(text)


def _parts(built: ProblemPrompt) -> list[tuple[str, str]]:
    """Return the parts of what is sent, each with a heading that is not sent."""
    prompt, rendered = built.prompt, built.rendered
    parts = [("text", rendered.text)] if rendered else name_parts(prompt)
    if prompt.stop:
        parts.append(("stop words", " ".join(map(repr, prompt.stop))))
    if rendered is not None and rendered.tokens:
        pairs = zip(rendered.tokens, rendered.pieces, strict=True)
        listed = "\n".join(f"{token:>7} {piece!r}" for token, piece in pairs)
        parts.append((f"{len(rendered.tokens)} tokens", listed))
    return parts
