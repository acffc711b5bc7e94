"""Declare options, and list them in help texts by what they are for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

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


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared option, which decorates commands."""

    names: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    group: str = OTHER

    def __call__(self, command: Any) -> Any:
        decorate = click.option(*self.names, cls=GroupedOption, group=self.group, **self.settings)
        return decorate(command)


def option(flag: str, *names: str, group: str = OTHER, **settings: Any) -> Declaration:
    """Return an option that can also be set as ``ASSAY_<FLAG>``.

    ``group`` is the heading under which a command with many options lists it.

    Options of several commands share that variable only if they mean the same. Others have one
    with the name of the command: ``envvar="ASSAY_BENCH_SEED"``. Only such names are in help texts.
    """
    name = flag.split("/")[0].lstrip("-").replace("-", "_")
    variable = f"ASSAY_{name.upper()}"
    settings.setdefault("envvar", variable)
    settings.setdefault("show_envvar", settings["envvar"] != variable)
    settings.setdefault("show_default", settings.get("default") not in (None, ""))
    return Declaration((flag, *names), settings, group)


def in_group(group: str, *declared: Declaration) -> tuple[Declaration, ...]:
    """Return options under another heading."""
    return tuple(dataclasses.replace(one, group=group) for one in declared)


def add_options(command: Callable[..., Any], *declared: Declaration) -> Callable[..., Any]:
    """Add options to a command, in this order."""
    for one in reversed(declared):
        command = one(command)
    return command


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
            if shown := [record for record in records if record]:
                with formatter.section(heading):
                    formatter.write_dl(shown)

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
    found: dict[str, list[click.Option]] = {group: [] for group in GROUPS}
    for option in options:
        found[option.group if isinstance(option, GroupedOption) else OTHER].append(option)
    return [(group, members) for group, members in found.items() if members]
