"""Print safely: commands write to the terminal only through this module."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import click

from assay.data import codec
from assay.data.printable import clean_line, clean_text
from assay.progress import Silent

# Exit code: a result without verdicts on some problems or samples, or a list without some runs.
INCOMPLETE = 3


@dataclass(frozen=True, slots=True)
class Styled:
    """A part of a line in bold or in a colour, if the terminal can show it."""

    text: str
    colour: str | None = None
    bold: bool = False


Line = str | tuple[str | Styled, ...]


def echo(*lines: Line, err: bool = False) -> None:
    """Print each argument as exactly one line, whatever characters are in it."""
    for line in lines:
        parts = (line,) if isinstance(line, str) else line
        click.echo("".join(map(_render, parts)), err=err)


def echo_text(text: str, *, err: bool = False) -> None:
    """Print a text of any number of lines."""
    click.echo(clean_text(text), err=err)


def echo_json(value: Any) -> None:
    """Print one line of ASCII JSON. NaN and infinity become null."""
    many = isinstance(value, list | tuple)
    data = [codec.to_json(one) for one in value] if many else codec.to_json(value)
    try:
        json.dumps(data, allow_nan=False)
    except ValueError:
        data = _finite(data)
    click.echo(codec.dumps(data))


def echo_result(value: Any, lines: Callable[[], Iterable[Line]], *, as_json: bool) -> None:
    """Print a command's result as JSON, or as lines for people."""
    if as_json:
        echo_json(value)
    else:
        echo(*lines())


def note(text: str) -> None:
    """Print one line on stderr."""
    echo(text, err=True)


class Notes(Silent):
    """A reporter that prints notes on stderr, and no progress."""

    def note(self, text: str) -> None:
        """Print one line."""
        note(text)


class LeftOut:
    """The files that a list leaves out because they are damaged or contradict themselves."""

    def __init__(self) -> None:
        self._any = False

    def warn(self, line: str) -> None:
        """Print why a file is left out."""
        self._any = True
        echo(f"warning: {line}", err=True)

    def exit_if_any(self) -> None:
        """Exit with code 3 if a file was left out: the list is not complete."""
        if self._any:
            click.get_current_context().exit(INCOMPLETE)


class StatusLine:
    """Show the current work on a terminal's last line; do nothing without a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._shown:
            click.echo(f"\r\x1b[K{clean_line(text)}", nl=False, err=True)

    def clear(self) -> None:
        self.show("")


def _render(part: str | Styled) -> str:
    if isinstance(part, str):
        return clean_line(part)
    return click.style(clean_line(part.text), fg=part.colour, bold=part.bold or None)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
