"""Write the generated reference pages: `python docs/make_reference.py`.

Options and variables come from the command line's own definitions. `tests/docs/test_reference.py`
fails when a committed page differs from what this script writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from assay.cli._groups import GroupedCommand, group_options
from assay.cli.main import cli
from assay.datasets.catalogue import data_files

REFERENCE = Path(__file__).parent / "reference"
NOTICE = "<!-- Written by docs/make_reference.py. Do not edit; run `make reference`. -->"

# Variables that no option reads, with their meaning.
OTHER_VARIABLES = {
    "ASSAY_CACHE_DIR": "Folder for downloads, verdicts, environments. Default: `~/.cache/assay`.",
    "ASSAY_CONTAINER_ENGINE": "Command that starts containers. Default: `docker`, then `podman`.",
    "ASSAY_DOCKER_IMAGE": "Image for `--sandbox docker`, as `name@sha256:…`.",
    "ASSAY_EVALPLUS": "Command of EvalPlus. Default: `evalplus.evaluate` on `PATH`.",
    "ASSAY_JUDGE_TOKEN_FILE": "File with the token for `--sandbox remote:URL`.",
    "ASSAY_LIVECODEBENCH_PATH": "Folder with LiveCodeBench's files.",
}
# Variables of other programs that assay reads.
FOREIGN_VARIABLES = {
    "HF_HOME": "Parent of the hub's cache, where LiveCodeBench's files may be.",
    "HF_HUB_CACHE": "The hub's cache, where LiveCodeBench's files may be.",
    "HF_HUB_OFFLINE": "With `1`, nothing is downloaded.",
    "HF_TOKEN": "Token for the Hugging Face hub. It is sent to huggingface.co only.",
    "OPENAI_API_KEY": "API key for the `openai` engine. It is sent to the server only.",
    "OPENAI_BASE_URL": "Default of `--base-url`.",
    "OMP_WAIT_POLICY": "Waiting policy of llama.cpp's threads. Default: `passive`.",
    "PYTHONPYCACHEPREFIX": "Folder for compiled modules of engines; see `docs/models.md`.",
    "VLLM_BATCH_INVARIANT": "With `1`, vLLM uses its batch-invariant kernels.",
    "VLLM_CPU_KVCACHE_SPACE": "vLLM's cache size on a CPU in GiB. Default: 1/8 of the memory.",
    "VLLM_LOGGING_LEVEL": "Log level of vLLM. Default: `WARNING`.",
    "XDG_CACHE_HOME": "Parent of the cache folder if `ASSAY_CACHE_DIR` is not set.",
    "XDG_CONFIG_HOME": "Parent of `assay/seal.key`, the key that signs cache entries.",
}
HEADINGS = ("| option | default | variable | meaning |", "|---|---|---|---|")


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below and including this one, with its full name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    for inner in sorted(command.list_commands(context)):
        found = command.get_command(context, inner)
        assert found is not None
        yield from walk(found, f"{name} {inner}")


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command, without --help."""
    return [p for p in command.params if isinstance(p, click.Option) and not p.hidden]


def variables(option: click.Option) -> tuple[str, ...]:
    """Return the environment variables that set an option."""
    found = option.envvar
    return () if found is None else (found,) if isinstance(found, str) else tuple(found)


def render_options() -> str:
    """Return the page that lists all options of all commands."""
    lines = [
        "# Options",
        "",
        NOTICE,
        "",
        "Every option can also be set by the environment variable in its row.",
        "An option on the command line overrides the variable.",
        "`assay COMMAND --help` prints the same texts.",
    ]
    for name, command in walk(cli, "assay"):
        context = click.Context(command, info_name=name)
        usage = " ".join(command.collect_usage_pieces(context))
        summary = (command.help or "").partition("\n\n")[0].replace("\n", " ").strip()
        lines += ["", f"## {name}", "", summary, "", f"Usage: `{name} {usage}`"]
        for heading, members in group_options(command, context):
            if rows := [_row(one) for one in members if one in options(command)]:
                title = ["", f"**{heading}**"] if isinstance(command, GroupedCommand) else []
                lines += [*title, "", *HEADINGS, *rows]
    return "\n".join(lines) + "\n"


def render_variables() -> str:
    """Return the page that lists all environment variables."""
    of_options: dict[str, set[str]] = {}
    users: dict[str, list[str]] = {}
    for name, command in walk(cli, "assay"):
        for option in options(command):
            for variable in variables(option):
                of_options.setdefault(variable, set()).add(max(option.opts, key=len))
                users.setdefault(variable, []).append(name.removeprefix("assay "))
    lines = ["# Environment variables", "", NOTICE, "", "## Settings without an option", ""]
    lines += _table(OTHER_VARIABLES)
    files = {data_files.get(name).variable: name for name in data_files.names()}
    lines += ["", "## Data files", "", "Each variable names a local copy of one data file.", ""]
    lines += _table({variable: f"Data file `{name}`." for variable, name in files.items()})
    also = {
        variable: f"Data file `{name}`, as in EvalPlus."
        for name in data_files.names()
        for variable in data_files.get(name).also_named_by
    }
    lines += ["", "## Variables of other programs", "", *_table({**also, **FOREIGN_VARIABLES})]
    lines += ["", "## Options", "", "| variable | option | commands |", "|---|---|---|"]
    for variable in sorted(of_options):
        flags = ", ".join(f"`{flag}`" for flag in sorted(of_options[variable]))
        lines.append(f"| `{variable}` | {flags} | {', '.join(users[variable])} |")
    return "\n".join(lines) + "\n"


def _row(option: click.Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    choices = ""
    if isinstance(option.type, click.Choice):
        named = [f"`{choice}`" for choice in option.type.choices if choice]
        choices = f" Choices: {', '.join(named)}."
    read = ", ".join(f"`{variable}`" for variable in variables(option))
    help_text = (option.help or "").replace("|", "\\|")
    return f"| {flags} | {_default(option)} | {read} | {help_text}{choices} |"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    value = option.default
    if option.is_flag and option.secondary_opts:
        return f"`{(option.opts if value else option.secondary_opts)[0]}`"
    if option.is_flag:
        return ""
    if option.multiple or value in (None, "") or not isinstance(value, str | int | float):
        return ""
    return f"`{value}`"


def _table(rows: dict[str, str]) -> list[str]:
    body = [f"| `{name}` | {meaning} |" for name, meaning in sorted(rows.items())]
    return ["| variable | meaning |", "|---|---|", *body]


PAGES = {"options.md": render_options, "environment.md": render_variables}


def main() -> None:
    """Write all pages, or those that are named on the command line."""
    for name in sys.argv[1:] or PAGES:
        (REFERENCE / name).write_text(PAGES[name]())


if __name__ == "__main__":
    main()
