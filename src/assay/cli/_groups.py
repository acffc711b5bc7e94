"""Declare options, and list them in help texts by what they are for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import click

MODEL = "Model"
DATA = "Data"
PROMPT = "Prompt and decoding"
MEASUREMENT = "Measurement"
JUDGING = "Judging"
CLUSTER = "Cluster"
OUTPUT = "Output"
GPU_CHECKS = "GPU checks"
# No option belongs to llama.cpp alone. Its own settings are given by --engine-option.
LOCAL_ENGINES = "Options of llama.cpp, torch and vLLM"
TORCH_AND_VLLM = "Options of torch and vLLM"
SERVERS = "Options of OpenAI-compatible servers"
ACCESS = "Address and access"
LOAD = "Load and limits"
OTHER = "Other options"
# In the order of the help text.
GROUPS = (
    MODEL, DATA, PROMPT, MEASUREMENT, JUDGING, CLUSTER, OUTPUT, LOCAL_ENGINES, TORCH_AND_VLLM,
    SERVERS, ACCESS, LOAD, GPU_CHECKS, OTHER,
)  # fmt: skip
LONGEST_SUMMARY = 200  # characters; a longer one would be cut off
VARIABLES = (
    "Every option can also be set by an environment variable, such as --n-samples by "
    "ASSAY_N_SAMPLES. Variables that do not follow this rule are shown with their option."
)


Decorator = Callable[[Any], Any]


def option(
    flag: str, text: str, name: str = "", *, group: str = OTHER, of: str = "", **settings: Any
) -> Decorator:
    """Return an option that can also be set as ``ASSAY_<FLAG>``.

    ``name`` is the command's parameter if it is not named after the flag, and may begin with more
    flags. ``group`` is the heading under which a command with many options lists it.

    Options of several commands share the variable only if they mean the same. Others have one with
    the name of the command, ``of``, such as ``ASSAY_BENCH_SEED``. Only those are in help texts.
    """
    plain = flag.split("/")[0].lstrip("-").replace("-", "_").upper()
    variable = f"ASSAY_{plain}"
    settings.setdefault("envvar", f"ASSAY_{of.upper()}_{plain}" if of else variable)
    settings.setdefault("show_envvar", settings["envvar"] != variable)
    settings.setdefault("show_default", settings.get("default") not in (None, ""))
    return click.option(flag, *name.split(), cls=GroupedOption, group=group, help=text, **settings)


def switch(flag: str, text: str, name: str = "", **settings: Any) -> Decorator:
    """Return an option without a value."""
    return option(flag, text, name, is_flag=True, **settings)


def field_options(kind: type[Any], group: str, **texts: str) -> tuple[Decorator, ...]:
    """Return the options for fields of a dataclass, by name, with the defaults that it has."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    return tuple(
        option(
            f"--{name.replace('_', '-')}", text, group=group, default=defaults[name],
            is_flag=defaults[name] is False,
        )
        for name, text in texts.items()
    )  # fmt: skip


def add_options(*declared: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, in this order."""
    return lambda command: functools.reduce(lambda c, one: one(c), reversed(declared), command)


class GroupedOption(click.Option):
    """An option that names the heading of the help text under which it is listed."""

    def __init__(self, *arguments: Any, group: str = OTHER, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help text lists options by group. Use it if there are many of them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group under its heading."""
        for heading, options in group_options(self, ctx):
            records = [option.get_help_record(ctx) for option in options]
            if entries := [record for record in records if record]:
                with formatter.section(heading):
                    formatter.write_dl(entries)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write how variables set options."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(VARIABLES)


class FullGroup(click.Group):
    """A group whose help text shows the summaries of its commands in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every command with its whole summary."""
        with formatter.section("Commands"):
            formatter.write_dl([(n, self.summarize(ctx, n)) for n in self.list_commands(ctx)])

    def summarize(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command's help text."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(LONGEST_SUMMARY) if command else ""


def group_options(
    command: click.Command, context: click.Context
) -> list[tuple[str, list[click.Option]]]:
    """Return the headings of a command's help text with their options, --help included."""
    options = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    if not isinstance(command, GroupedCommand):
        return [("Options", options)]
    by_group: dict[str, list[click.Option]] = {group: [] for group in GROUPS}
    for option in options:
        by_group[option.group if isinstance(option, GroupedOption) else OTHER].append(option)
    return [(group, members) for group, members in by_group.items() if members]
