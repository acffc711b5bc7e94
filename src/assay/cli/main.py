"""The command line: parses, calls, prints."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

from assay import __version__
from assay.borders.printable import clean_line
from assay.cli._output import echo, echo_text
from assay.cli.bench import bench
from assay.cli.check import check_model
from assay.cli.compare import compare
from assay.cli.compare_hf import compare_hf
from assay.cli.contracts import contracts
from assay.cli.convert import convert
from assay.cli.data import data
from assay.cli.env import env
from assay.cli.eval import evaluate
from assay.cli.export import export
from assay.cli.extract import extract
from assay.cli.history import history
from assay.cli.passk import passk
from assay.cli.perplexity import perplexity
from assay.cli.prompt import prompt
from assay.cli.qa import qa
from assay.cli.run import run
from assay.cli.sandbox import sandbox
from assay.cli.score import score
from assay.errors import AssayError

FAILURE, INTERRUPTED = 2, 130
LONGEST_ERROR = 2_000  # characters


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="assay")
def cli() -> None:
    """Evaluate code-generating language models, every recipe identically.

    \b
    Example:
      assay eval humaneval --model model.gguf
    """


for command in (
    evaluate,
    run,
    history,
    compare,
    passk,
    sandbox,
    score,
    extract,
    export,
    prompt,
    data,
    env,
    convert,
    perplexity,
    compare_hf,
    qa,
    bench,
    contracts,
    check_model,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; what a user can cause ends in one line and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    _open_closed_streams()
    try:
        code = cli.main(prog_name="assay", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        echo_text(error.format_message(), err=True)
        sys.exit(FAILURE)
    except AssayError as error:
        _leave(str(error), FAILURE)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "assay"
        _leave(f"{error.format_message()} See '{where} --help'.", FAILURE)
    except (click.Abort, KeyboardInterrupt):
        _leave(
            "stopped; what was made is kept, the same command (without --fresh) continues",
            INTERRUPTED,
        )
    except BrokenPipeError:
        # The reader of our output went away; Python must not trip over it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except OSError as error:
        _leave(f"{error.filename or 'output'}: {error.strerror or error}", FAILURE)
    sys.exit(code if isinstance(code, int) else 0)


def _open_closed_streams() -> None:
    """Open /dev/null in place of closed standard streams: a file of ours must not get their number.

    What a library prints would end up in that file.
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
