"""``assay env``."""

from __future__ import annotations

import click

from assay import codec
from assay.borders.printable import quantity
from assay.cli._groups import FullGroup
from assay.cli._options import as_json
from assay.cli._output import echo, echo_json, note
from assay.errors import UsageError
from assay.report.text import table
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
    """Manage environments with the Python packages that some benchmarks need.

    \b
    Examples:
      assay env list
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
    if as_json:
        echo_json([codec.to_json(state) for state in states])
        return
    rows = [("environment", "state", "MB", "folder")]
    rows += [(s.name, s.state, str(s.size_mb or "-"), s.folder) for s in states]
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
