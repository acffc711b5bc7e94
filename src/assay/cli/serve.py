"""``assay serve``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli._groups import DATA, LOAD, OUTPUT, GroupedCommand, option, switch
from assay.cli._options import address_options, data_dir, python, sandbox, sandbox_tier, workers
from assay.cli._output import echo
from assay.data.guard import HOST, read_token
from assay.errors import UsageError, install_hint

if TYPE_CHECKING:
    from assay.serve.server import JudgeServer

PORT = 8080


host, port, token_file = address_options("serve", HOST, PORT)
_load = functools.partial(option, group=LOAD, of="serve")


@click.command(cls=GroupedCommand)
@host
@port
@token_file
@workers
@sandbox
@sandbox_tier
@python
@option(
    "--benchmark",
    "Benchmark to load at the start; only those named are served. Can be repeated. Default: "
    "all, each loaded on first use.",
    "benchmarks", group=DATA, of="serve", multiple=True,
)  # fmt: skip
@_load(
    "--queue",
    "Maximum number of programs in the queue or being judged. More are refused with status 429.",
    type=click.IntRange(1),
    default=4096,
)
@_load(
    "--client-quota", "Maximum number of programs of one client address in the queue.",
    type=click.IntRange(1), default=2048,
)  # fmt: skip
@_load("--batch", "Maximum number of programs per request.", type=click.IntRange(1), default=1024)
@_load("--body-mb", "Maximum size of a request in MB.", type=click.IntRange(1, 1024), default=32)
@_load(
    "--queue-mb", "Maximum size of all open requests together in MB.", type=click.IntRange(1),
    default=512,
)  # fmt: skip
@_load(
    "--request-timeout", "Time limit for a request in seconds.", "request_s",
    type=click.FloatRange(1), default=1800.0,
)  # fmt: skip
@_load(
    "--drain-timeout", "Time limit for open requests after SIGTERM in seconds.", "drain_s",
    type=click.FloatRange(0), default=30.0,
)  # fmt: skip
@_load(
    "--max-cpu", "Maximum CPU seconds per program that a request can set.",
    type=click.FloatRange(0.1, 3600), default=600.0,
)  # fmt: skip
@_load(
    "--max-memory", "Maximum memory per program in MB that a request can set.",
    type=click.IntRange(64), default=4096,
)  # fmt: skip
@switch("--quiet", "Log errors only, not every request.", group=OUTPUT, of="serve")
@data_dir
def serve(
    token_file: Path | None, max_cpu: float, max_memory: int, quiet: bool, **settings: Any
) -> None:
    """Serve the judge over HTTP: verdicts on programs, and the API of SandboxFusion.

    The log is JSON lines on stderr. SIGTERM ends the server after open requests are answered.

    \b
    Examples:
      assay serve --benchmark humaneval
      assay serve --host 0.0.0.0 --token-file ~/.config/assay/serve.token
    """
    from dataclasses import replace

    try:
        from assay.serve.options import MOST_LIMITS, ServeOptions
        from assay.serve.server import JudgeServer
    except ImportError as error:
        raise UsageError(
            f"assay serve: needs starlette and uvicorn ({error}). Run {install_hint('serve')}."
        ) from error
    limits = replace(
        MOST_LIMITS, cpu_s=max_cpu, call_cpu_s=max_cpu, wall_s=1.5 * max_cpu, memory_mb=max_memory
    )
    token = read_token(token_file) if token_file else ""
    options = ServeOptions(token=token, limits=limits, log_requests=not quiet, **settings)
    server = JudgeServer(options)
    server.run(lambda: announce(server))


def announce(server: JudgeServer) -> None:
    """Print where the server is."""
    judges = server.service.capabilities
    what = f"{judges.kind}, tier {judges.tier}, {judges.python}"
    echo(f"assay serve: {server.url}  ({what}; press Ctrl-C to stop)")
