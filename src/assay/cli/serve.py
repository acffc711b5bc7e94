"""``assay serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli._choices import SANDBOX_HELP, TIER_HELP, python
from assay.cli._groups import ACCESS, DATA, JUDGING, LOAD, OUTPUT, GroupedCommand
from assay.cli._options import data_dir, option
from assay.cli._output import echo
from assay.data.guard import HOST, read_token
from assay.errors import UsageError, install_hint

if TYPE_CHECKING:
    from assay.serve.server import JudgeServer

PORT = 8080


@click.command(cls=GroupedCommand)
@option(
    "--host",
    group=ACCESS,
    default=HOST,
    envvar="ASSAY_SERVE_HOST",
    help="Address to listen on. An address that other machines can reach needs --token-file.",
)
@option(
    "--port",
    group=ACCESS,
    type=click.IntRange(0, 65_535),
    default=PORT,
    envvar="ASSAY_SERVE_PORT",
    help="Port to listen on; 0 chooses a free one.",
)
@option(
    "--token-file",
    group=ACCESS,
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="ASSAY_SERVE_TOKEN_FILE",
    help="File with the token that clients must send. If the file does not exist, it is created "
    "with a random token.",
)
@option(
    "--workers",
    type=int,
    default=0,
    group=JUDGING,
    help="Number of programs to judge at a time; 0 uses one per core.",
)
@option("--sandbox", group=JUDGING, default="process", help=SANDBOX_HELP)
@option("--sandbox-tier", group=JUDGING, default="auto", help=TIER_HELP)
@python
@option(
    "--benchmark",
    "benchmarks",
    group=DATA,
    multiple=True,
    envvar="ASSAY_SERVE_BENCHMARK",
    help="Benchmark to load at the start; only those named are served. Can be repeated. Default: "
    "all, each loaded on first use.",
)
@option(
    "--queue",
    group=LOAD,
    type=click.IntRange(1),
    default=4096,
    envvar="ASSAY_SERVE_QUEUE",
    help="Maximum number of programs in the queue or being judged. More are refused with status "
    "429.",
)
@option(
    "--client-quota",
    group=LOAD,
    type=click.IntRange(1),
    default=2048,
    envvar="ASSAY_SERVE_CLIENT_QUOTA",
    help="Maximum number of programs of one client address in the queue.",
)
@option(
    "--batch",
    group=LOAD,
    type=click.IntRange(1),
    default=1024,
    envvar="ASSAY_SERVE_BATCH",
    help="Maximum number of programs per request.",
)
@option(
    "--body-mb",
    group=LOAD,
    type=click.IntRange(1, 1024),
    default=32,
    envvar="ASSAY_SERVE_BODY_MB",
    help="Maximum size of a request in MB.",
)
@option(
    "--queue-mb",
    group=LOAD,
    type=click.IntRange(1),
    default=512,
    envvar="ASSAY_SERVE_QUEUE_MB",
    help="Maximum size of all open requests together in MB.",
)
@option(
    "--request-timeout",
    group=LOAD,
    type=click.FloatRange(1),
    default=1800.0,
    envvar="ASSAY_SERVE_REQUEST_TIMEOUT",
    help="Time limit for a request in seconds.",
)
@option(
    "--drain-timeout",
    group=LOAD,
    type=click.FloatRange(0),
    default=30.0,
    envvar="ASSAY_SERVE_DRAIN_TIMEOUT",
    help="Time limit for open requests after SIGTERM in seconds.",
)
@option(
    "--max-cpu",
    group=LOAD,
    type=click.FloatRange(0.1, 3600),
    default=600.0,
    envvar="ASSAY_SERVE_MAX_CPU",
    help="Maximum CPU seconds per program that a request can set.",
)
@option(
    "--max-memory",
    group=LOAD,
    type=click.IntRange(64),
    default=4096,
    envvar="ASSAY_SERVE_MAX_MEMORY",
    help="Maximum memory per program in MB that a request can set.",
)
@option(
    "--quiet",
    group=OUTPUT,
    is_flag=True,
    envvar="ASSAY_SERVE_QUIET",
    help="Log errors only, not every request.",
)
@data_dir
def serve(
    host: str,
    port: int,
    token_file: Path | None,
    workers: int,
    sandbox: str,
    sandbox_tier: str,
    python: str,
    benchmarks: tuple[str, ...],
    queue: int,
    client_quota: int,
    batch: int,
    body_mb: int,
    queue_mb: int,
    request_timeout: float,
    drain_timeout: float,
    max_cpu: float,
    max_memory: int,
    quiet: bool,
    data_dir: Path | None,
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
    options = ServeOptions(
        host=host,
        port=port,
        token=read_token(token_file) if token_file else "",
        workers=workers,
        sandbox=sandbox,
        sandbox_tier=sandbox_tier,
        python=python,
        benchmarks=benchmarks,
        data_dir=data_dir,
        queue=queue,
        client_quota=client_quota,
        batch=batch,
        body_mb=body_mb,
        queue_mb=queue_mb,
        request_s=request_timeout,
        drain_s=drain_timeout,
        limits=limits,
        log_requests=not quiet,
    )
    server = JudgeServer(options)
    server.run(lambda: announce(server))


def announce(server: JudgeServer) -> None:
    """Print where the server is."""
    found = server.service.capabilities
    what = f"{found.kind}, tier {found.tier}, {found.python}"
    echo(f"assay serve: {server.url}  ({what}; press Ctrl-C to stop)")
