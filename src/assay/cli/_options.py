"""Options that several commands share; each has an environment variable ``ASSAY_*``."""

from __future__ import annotations

import functools
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.pipeline import EngineOptions

if TYPE_CHECKING:
    from collections.abc import Callable


def option(flag: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """A click option that can also be set as ``ASSAY_<FLAG>``."""
    name = flag.split("/")[0].lstrip("-").replace("-", "_")
    settings.setdefault("envvar", f"ASSAY_{name.upper()}")
    settings.setdefault("show_envvar", True)
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.option(flag, *names, **settings)


results_dir = option(
    "--results-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default="results",
    help="Folder of runs and results.",
)
data_dir = option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="ASSAY_DATA_DIR",
    help="Folder with benchmark data, looked into first.",
)
as_json = option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


def modelling(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a model is run: the command gets ``engine``, an EngineOptions."""

    @functools.wraps(command)
    def with_engine(**asked: Any) -> Any:
        engine = EngineOptions(**{f.name: asked.pop(f.name) for f in fields(EngineOptions)})
        return command(engine=engine, **asked)

    decorated: Callable[..., Any] = with_engine
    for one in (
        option(
            "--batch-mode",
            type=click.Choice(["auto", "on", "off"]),
            default="auto",
            envvar=["ASSAY_BATCH_MODE", "APR_BATCH_MODE"],
            help="off: one prompt at a time; on: an error if the engine cannot batch.",
        ),
        option("--parallel", type=int, default=0, help="Sequences at a time; 0: as many as pay."),
        option(
            "--device",
            type=click.Choice(["auto", "cpu", "cuda"]),
            default="auto",
            help="auto: a GPU if the engine can use one here.",
        ),
        option(
            "--dtype",
            type=click.Choice(["", "float32", "bfloat16", "float16"]),
            default="",
            help="Number format of the hf engine; default: float32 on a CPU, bfloat16 on a GPU.",
        ),
        option("--adapter", default="", help="Folder of LoRA weights to put on the model."),
        option(
            "--prompt-form",
            type=click.Choice(["auto", "chat", "text"]),
            default="auto",
            help="auto: chat if the model has a chat template.",
        ),
        option("--base-url", default="", help="Of the server, for the openai engine."),
        option("--logprobs", is_flag=True, help="Record each completion's mean log-probability."),
    )[::-1]:
        decorated = one(decorated)
    return decorated


def judging(command: Callable[..., Any]) -> Callable[..., Any]:
    """What every command that executes programs can be told."""
    for one in (
        option("--split", default="", help="Part of the benchmark, such as train of mbpp."),
        option("--sandbox", default="process", help="Where programs are executed."),
        option("--sandbox-tier", default="auto", help="Least isolation: root, user, landlock."),
        option(
            "--workers", type=int, default=0, help="Programs judged at a time; 0: one per core."
        ),
        option("--check-references", is_flag=True, help="Run the reference solutions once more."),
        option(
            "--select",
            default="",
            help="Score one chosen sample a problem too: first, logprob, examples, agreement.",
        ),
        option("--no-cache", is_flag=True, help="Execute also what was executed before."),
        data_dir,
        results_dir,
        option(
            "--resume/--fresh",
            "resume",
            default=True,
            envvar="ASSAY_RESUME",
            help="Continue the same run if there is one, or start anew.",
        ),
        as_json,
    )[::-1]:
        command = one(command)
    return command
