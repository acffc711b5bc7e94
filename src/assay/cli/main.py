"""Command line: parse options, call the library, print results."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import click

from assay import __version__
from assay.cli._groups import VARIABLES, FullGroup
from assay.cli._output import echo, echo_text
from assay.data.printable import clean_line
from assay.errors import MOST_MISTAKES, AssayError, MistakesError

FAILURE, INTERRUPTED = 2, 130
LONGEST_ERROR = 2_000  # characters


# The commands by section of the help text. A command's module is imported when it is used.
SECTIONS = {
    "Evaluate": {
        "eval": "eval:evaluate",
        "suite": "suite:suite",
        "benchmarks": "benchmarks:list_all",
        "benchmark": "benchmark:benchmark",
        "score": "score:score",
        "run": "run:run",
        "prompt": "prompt:prompt",
        "extract": "extract:extract",
    },
    "Look at results": {
        "history": "history:history",
        "show": "show:show",
        "compare": "compare:compare",
        "leaderboard": "leaderboard:leaderboard",
        "report": "report:report",
        "view": "view:view",
        "plan": "plan:plan",
        "export": "export:export",
        "passk": "passk:passk",
    },
    "Models": {
        "check": "check:check_model",
        "bench": "bench:bench",
        "perplexity": "perplexity:perplexity",
        "compare-hf": "compare_hf:compare_hf",
        "qa": "qa:qa",
        "convert": "convert:convert",
    },
    "Sandbox": {
        "sandbox": "sandbox:sandbox",
        "env": "env:env",
        "serve": "serve:serve",
    },
    "Maintenance": {
        "data": "data:data",
        "contracts": "contracts:contracts",
    },
}
HOMES = {name: home for section in SECTIONS.values() for name, home in section.items()}


class Commands(FullGroup):
    """A group whose commands are imported when they are used, and listed by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the names in the order of the help text."""
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of a command; None if there is no such command."""
        if cmd_name not in HOMES:
            return None
        module, name = HOMES[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(f"assay.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every section with the summaries of its commands in full."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, self.summarize(ctx, name)) for name in names])


@click.group(
    cls=Commands,
    epilog=f"assay COMMAND --help lists the options of a command. {VARIABLES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="assay")
def cli() -> None:
    """Evaluate code-generating language models, all with the same protocol.

    \b
    Example:
      assay eval humaneval --model model.gguf
    """


def main() -> None:
    """Run the command line. Print an error that a user can cause as one line; exit with code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    _open_closed_streams()
    try:
        code = cli.main(prog_name="assay", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        echo_text(error.format_message(), err=True)
        sys.exit(FAILURE)
    except MistakesError as error:
        _leave(_list_mistakes(error), FAILURE)
    except AssayError as error:
        _leave(str(error), FAILURE)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "assay"
        _leave(f"{error.format_message()} See '{where} --help'.", FAILURE)
    except (click.Abort, KeyboardInterrupt):
        _leave(
            "Interrupted. Completed work is saved; run the same command to resume.",
            INTERRUPTED,
        )
    except BrokenPipeError:
        # The reader of our output has closed it. Python would fail on it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except OSError as error:
        _leave(f"{error.filename or 'output'}: {error.strerror or error}", FAILURE)
    sys.exit(code if isinstance(code, int) else 0)


def _list_mistakes(error: MistakesError) -> str:
    """Print several mistakes, each as one line. Return the error that follows them."""
    if len(error.problems) == 1:
        return str(error)
    echo(*error.problems[:MOST_MISTAKES], err=True)
    if (more := len(error.problems) - MOST_MISTAKES) > 0:
        echo(f"... and {more:,} more", err=True)
    count = error.count(len(error.problems))
    return f"{error.name}: has {count}. Correct them; nothing was loaded."


def _open_closed_streams() -> None:
    """Open /dev/null in place of closed standard streams.

    Otherwise a file that is opened later gets their number, and what a library prints ends up in
    that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def _leave(text: str, code: int) -> None:
    echo(clean_line(f"assay: {' '.join(text.split())}", LONGEST_ERROR), err=True)
    sys.exit(code)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
