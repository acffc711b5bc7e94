"""Options of the command line and their environment variables."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

import click
import pytest

from assay.cli import _options, cli
from assay.cli._groups import (
    GROUPS,
    LOCAL_ENGINES,
    OTHER,
    SERVERS,
    TORCH_AND_VLLM,
    GroupedCommand,
    group_options,
)
from assay.models.opening import backends
from assay.peers import peers
from assay.pipeline.cross_check import OURS
from assay.prompts import strategies
from assay.sandbox import sandboxes
from assay.sandbox.host.tiers import TIERS
from assay.selection import methods

MANY_OPTIONS = 13  # more are listed by group
# Commands whose options mean the same although their help texts differ, by variable.
SAME_MEANING = {
    "ASSAY_BYTES": {"perplexity", "compare-hf"},  # how much of a text is used
    "ASSAY_DATASET": {"perplexity", "compare-hf"},  # a text, by name or file
    "ASSAY_DEVICE": {"eval", "run", "prompt", "perplexity", "bench", "compare-hf", "qa"},
    "ASSAY_HF": {"compare-hf", "qa"},  # the model that is compared with
    "ASSAY_MODEL": {"eval", "prompt"},  # the model that is run
    "ASSAY_NAME": {"eval", "run", "prompt", "perplexity", "bench", "score"},  # in results
    "ASSAY_PLOT": {"compare", "leaderboard", "history", "bench", "compare-hf"},  # a plot's file
    "ASSAY_POLICY": {"compare-hf", "qa"},  # file of thresholds
    "ASSAY_PROMPT_STRATEGY": {"eval", "prompt"},
    # where programs are executed
    "ASSAY_SANDBOX": {"eval", "suite", "score", "check", "selftest", "serve"},
    "ASSAY_SANDBOX_TIER": {"eval", "suite", "score", "check", "selftest"},
    "ASSAY_VERBOSE": {"run", "qa"},  # whether more is printed
    "ASSAY_WORKERS": {"eval", "suite", "score", "check", "list", "serve"},  # programs at a time
}
# Variables with one value for some commands, and one per line for others.
ONE_OR_MORE = {"ASSAY_MODEL"}


def leaves(command: click.Command) -> Iterator[click.Command]:
    """Yield all commands that are not groups."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from leaves(inner)
    else:
        yield command


def by_variable(root: click.Command) -> dict[str, dict[str, click.Option]]:
    """Return the options that a variable sets, by the names of their commands."""
    found: dict[str, dict[str, click.Option]] = defaultdict(dict)
    for command in leaves(root):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                names = parameter.envvar or []
                for name in [names] if isinstance(names, str) else names:
                    found[name][command.name or ""] = parameter
    return found


def clashes(root: click.Command) -> list[str]:
    """Return the variables that set options of different kinds, or of different meanings."""
    return [
        name
        for name, options in by_variable(root).items()
        if (len(set(map(_kind, options.values()))) > 1 and name not in ONE_OR_MORE)
        or (
            len({one.help for one in options.values()}) > 1
            and not options.keys() <= SAME_MEANING.get(name, set())
        )
    ]


def _kind(one: click.Option) -> tuple[object, ...]:
    choices = tuple(one.type.choices) if isinstance(one.type, click.Choice) else ()
    return type(one.type), choices, one.is_flag, one.multiple, tuple(one.secondary_opts)


def test_a_variable_has_one_meaning() -> None:
    assert clashes(importlib.import_module("assay.cli.main").cli) == []


def test_a_clash_is_found() -> None:
    first, second = (
        click.Command(name, params=[click.Option(["--force"], envvar="ASSAY_FORCE", help=name)])
        for name in ("compare", "convert")
    )
    assert clashes(click.Group(commands=[first, second])) == ["ASSAY_FORCE"]


def test_every_option_has_a_variable() -> None:
    for command in leaves(importlib.import_module("assay.cli.main").cli):
        options = [p for p in command.params if isinstance(p, click.Option)]
        assert [p.name for p in options if not p.envvar] == []


def shown_options(text: str) -> list[str]:
    """Return the flags at the beginning of the entries below the headings of a help text."""
    below = re.split(r"^\w.*:$", text, maxsplit=1, flags=re.M)[1]
    entries = re.findall(r"^  (-.*?)(?:  |$)", below, re.M)
    return [flag for entry in entries for flag in re.findall(r"(?<![\w-])--?[\w-]+", entry)]


@pytest.mark.parametrize("command", list(leaves(cli)), ids=lambda command: command.name)
def test_help_shows_every_option_once(command: click.Command) -> None:
    context = click.Context(command, info_name=command.name, help_option_names=["-h", "--help"])
    options = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    flags = [flag for one in options for flag in (*one.opts, *one.secondary_opts)]
    assert sorted(shown_options(command.get_help(context))) == sorted(flags)


@pytest.mark.parametrize("command", list(leaves(cli)), ids=lambda command: command.name)
def test_a_command_with_many_options_groups_them(command: click.Command) -> None:
    grouped = isinstance(command, GroupedCommand)
    assert grouped == (len(command.params) > MANY_OPTIONS)
    if grouped:
        groups = dict(group_options(command, click.Context(command)))
        assert ["--help" in option.opts for option in groups[OTHER]] == [True]
        assert list(groups) == [group for group in GROUPS if group in groups]


def test_options_of_one_engine_are_under_its_heading() -> None:
    command = cli.get_command(click.Context(cli), "eval")
    assert command is not None
    groups = dict(group_options(command, click.Context(command)))
    flags = {group: {one.opts[0] for one in options} for group, options in groups.items()}
    assert flags[SERVERS] >= {"--base-url", "--timeout", "--requests-per-minute", "--price-in"}
    assert flags[TORCH_AND_VLLM] == {"--dtype", "--adapter", "--revision"}
    assert flags[LOCAL_ENGINES] == {"--device", "--devices", "--threads"}


@pytest.mark.parametrize(
    ("listed", "registered"),
    [
        (_options.SANDBOXES, sandboxes.names),
        (_options.TIERS, lambda: ["auto", *TIERS]),
        (_options.SELECTIONS, methods.names),
        (_options.STRATEGIES, strategies.names),
        (_options.JUDGES, lambda: [OURS, *peers.names()]),
        (_options.ENGINES, backends.names),
    ],
)
def test_help_texts_list_the_registered_choices(
    listed: tuple[str, ...], registered: Callable[[], list[str]]
) -> None:
    assert sorted(listed) == sorted(registered())


def test_choices_are_in_the_help_texts() -> None:
    texts = {
        flag: parameter.help or ""
        for command in leaves(cli)
        for parameter in command.params
        if isinstance(parameter, click.Option) and command.name in ("eval", "score")
        for flag in parameter.opts
    }
    assert "process, docker or wasm" in texts["--sandbox"]
    assert "auto, root, user or landlock" in texts["--sandbox-tier"]
    assert "first, logprob, examples or agreement" in texts["--select"]
    assert "standard, cgo, few-shot or scot; all" in texts["--prompt-strategy"]
    assert "assay or evalplus" in texts["--engine"]
    assert "gguf, hf, openai" in texts["--model"]
