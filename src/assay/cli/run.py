"""``assay run``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import click

from assay.cli._groups import DATA, OUTPUT, PROMPT, GroupedCommand, option, switch
from assay.cli._option_sets import model_options, prompt_options, sampling_options
from assay.cli._options import ANY_PATH, as_json, resume
from assay.cli._output import echo_json, echo_text
from assay.cli._progress import ProgressDisplay
from assay.errors import ModelError, UsageError
from assay.pipeline.batch.generation import BatchReport, RunConfig, run_batch, run_prompt

MOST_INPUT = 1 << 24  # bytes: far beyond any context


@click.command(cls=GroupedCommand)
@click.argument("model")
@option("--batch-jsonl", "File with one prompt per line.", group=DATA, type=ANY_PATH)
@option(
    "--output", "File for the completions. Default: print them.", group=OUTPUT, of="run",
    type=ANY_PATH,
)  # fmt: skip
@option("--prompt", "A single prompt; - reads it from standard input.", group=DATA)
@switch(
    "--chat", "Send each prompt as a user message. Default: continue the prompt as text.",
    group=PROMPT,
)  # fmt: skip
@sampling_options
@prompt_options
@model_options
@resume
@switch("--verbose", "Print engine, device and speed on stderr.", group=OUTPUT)
@as_json
def run(
    batch_jsonl: Path | None, output: Path | None, prompt: str | None, resume: bool, verbose: bool,
    as_json: bool, **settings: Any,
) -> None:  # fmt: skip
    """Generate completions for one prompt or a file of prompts. MODEL is loaded once.

    A line of the file is a JSON object with "prompt" or "messages". Optional keys are "task_id",
    "max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed" and
    "stop". Every completion is written as a line as soon as it is finished; one that failed has
    the key "error". If --output exists, only missing completions are generated.

    \b
    Examples:
      assay run model.gguf --batch-jsonl prompts.jsonl --output answers.jsonl
      assay run model.gguf --chat --prompt "Write a haiku about Python."
    """
    config = _config(**settings)
    if (batch_jsonl is None) == (prompt is None):
        raise UsageError("--prompt, --batch-jsonl: exactly one is needed. Give a text, or a file.")
    if prompt is not None:
        if output is not None or config.sampling.n_samples > 1:
            raise UsageError("--prompt: prints one completion only. Use --batch-jsonl for more.")
        _complete(config, prompt, verbose=verbose, as_json=as_json)
        return
    assert batch_jsonl is not None
    quiet = as_json and not verbose
    prints = output is None
    with ProgressDisplay(batch_jsonl.name, quiet=quiet, live=not prints, judges=False) as display:
        report = run_batch(
            config, batch_jsonl, output, display, fresh=not resume,
            receive=(lambda line: echo_json(line.to_json())) if prints else (lambda _: None),
        )  # fmt: skip
        display.note(_summary(report))
        if verbose:
            display.note(_speed(report.tokens_generated, report.seconds))
    if as_json and output is not None:
        echo_json(report)
    if report.failed and not report.made + report.kept:
        raise ModelError(f"No prompt was completed. The first error is: {report.first_error}")


def _config(**settings: Any) -> RunConfig:
    config = RunConfig(**settings)
    form = config.engine.prompt_form
    if config.chat and form == "text":
        raise UsageError("--chat: contradicts --prompt-form text. Drop one of them.")
    return dataclasses.replace(config, chat=config.chat or form == "chat")


def _complete(config: RunConfig, prompt: str, *, verbose: bool, as_json: bool) -> None:
    with ProgressDisplay("", quiet=not verbose, judges=False) as display:
        line = run_prompt(config, _read_input() if prompt == "-" else prompt, display)
        display.note(_speed(line.tokens_generated, line.inference_ms / 1000))
    if as_json:
        echo_json(line.to_json())
    else:
        echo_text(line.text)


def _read_input() -> str:
    content = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(content) > MOST_INPUT:
        raise UsageError(
            f"standard input: is longer than {MOST_INPUT >> 20} MiB. Give a shorter prompt."
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input: not UTF-8 ({error}). Convert it.") from error


def _summary(report: BatchReport) -> str:
    parts = [f"{report.made} generated"]
    if report.kept:
        parts.append(f"{report.kept} from an earlier run")
    if report.failed:
        parts.append(f"{report.failed} failed, first error: {report.first_error}")
    return f"completions: {', '.join(parts)}"


def _speed(tokens: int, seconds: float) -> str:
    rate = f", {tokens / seconds:.1f} tokens/s" if seconds else ""
    return f"{tokens} tokens in {seconds:.1f} s{rate}"
