"""``assay env``."""

from __future__ import annotations

import os

import click

from assay.cli._groups import FullGroup
from assay.cli._options import as_json
from assay.cli._output import echo, echo_json, echo_result, note
from assay.data.printable import quantity
from assay.errors import UsageError
from assay.report.text import table
from assay.sandbox.environments import interpreters
from assay.sandbox.environments import store as environments


class _Environments(FullGroup):
    """A group with one command per environment: ``assay env bigcodebench``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*environments.RECIPES, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in environments.RECIPES:
            return _creation(name)
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = ", ".join(self.list_commands(ctx))
            raise UsageError(f"environment '{args[0]}': unknown. Choose {known}.")
        return super().resolve_command(ctx, args)


@click.group(cls=_Environments)
def env() -> None:
    """Manage interpreters that judge programs, and the packages that some benchmarks need.

    \b
    Examples:
      assay env list
      assay env python 3.11
      assay env bigcodebench
      assay env remove bigcodebench
    """


@env.command("list")
@as_json
def list_all(as_json: bool) -> None:
    """List the environments and whether they are installed.

    \b
    Example:
      assay env list
    """
    states = environments.states()
    rows = [("environment", "state", "MB", "folder")]
    rows += [(s.name, s.state, str(s.size_mb or "-"), s.folder) for s in states]
    echo_result(states, lambda: table(rows), as_json=as_json)


@env.command()
@click.argument("version", default="")
@as_json
def python(version: str, as_json: bool) -> None:
    """Find the Python of a VERSION to judge programs with, or install it by uv.

    Without VERSION, list all that are found on PATH, by uv, pyenv and conda. The default of
    --python is marked.

    \b
    Examples:
      assay env python
      assay env python 3.11
    """
    pythons = [interpreters.install(version, note)] if version else interpreters.discover()
    if as_json:
        echo_json(pythons)
    elif version:
        echo(f"Python {pythons[0].version} is ready: {pythons[0].path}")
    else:
        default = os.path.realpath(interpreters.choose().path)
        marks = ["default" if os.path.realpath(one.path) == default else "" for one in pythons]
        rows = [("Python", "found by", "path", "")]
        rows += [(p.version, p.source, p.path, m) for p, m in zip(pythons, marks, strict=True)]
        echo(*table(rows))


@env.command()
@click.argument("name")
def remove(name: str) -> None:
    """Delete an environment and its old versions.

    \b
    Example:
      assay env remove bigcodebench
    """
    folders = environments.remove(name)
    for folder in folders:
        echo(f"removed {folder}")
    if not folders:
        echo(f"environment '{name}' is not installed")


def _creation(name: str) -> click.Command:
    def create() -> None:
        environment = environments.create(name, note)
        echo(f"environment '{name}' is ready: {environment.folder}")

    count = len(environments.RECIPES[name].packages())
    summary = (
        f"Create the environment '{name}' ({quantity(count, 'pinned package')}) unless it exists."
    )
    return click.Command(name, callback=create, help=summary, short_help=summary)
