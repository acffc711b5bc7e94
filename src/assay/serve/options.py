"""Set the limits of a server."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from assay.data.guard import HOST
from assay.errors import UsageError
from assay.sandbox import Sandbox, open_sandbox
from assay.types import Limits

MOST_WORKERS = 1024
PORT = 8080
LEAST_MEMORY_MB = 16  # as in benchmarks of users
WORKER_LIMITS = ("memory_mb", "processes", "files_mb")  # that a worker starts with
# The most that any benchmark needs.
MOST_LIMITS = Limits(
    cpu_s=600.0, call_cpu_s=600.0, wall_s=900.0, memory_mb=4096, processes=256,
    output_bytes=32 << 20, files_mb=512,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The settings of a server."""

    host: str = HOST
    port: int = PORT
    token: str = ""
    workers: int = 0  # 0: one per core
    sandbox: str = "process"
    sandbox_tier: str = "auto"
    python: str = ""  # version or path of the Python that judges; none: the default
    benchmarks: tuple[str, ...] = ()  # all that are served, loaded at the start; none: all
    data_dir: Path | None = None
    queue: int = 4096  # programs that wait or are judged
    client_quota: int = 2048  # of one client
    batch: int = 1024  # programs of a request
    body_mb: int = 32
    queue_mb: int = 512
    request_s: float = 1800.0  # for a request, from its body to the last verdict
    body_s: float = 30.0  # for the body to arrive
    drain_s: float = 30.0  # for open requests after SIGTERM
    limits: Limits = MOST_LIMITS  # that a request may ask for
    log_requests: bool = True

    def check(self) -> None:
        """Raise UsageError if options contradict each other."""
        if not 0 <= self.workers <= MOST_WORKERS:
            raise UsageError(
                f"--workers {self.workers}: must be 0 (one per core) to {MOST_WORKERS}."
            )
        if self.batch > self.client_quota or self.client_quota > self.queue:
            raise UsageError(
                f"--batch {self.batch}, --client-quota {self.client_quota}, --queue {self.queue}: "
                "must be in increasing order. Give a larger queue, or a smaller batch."
            )
        if self.body_mb > self.queue_mb:
            raise UsageError(
                f"--body-mb {self.body_mb}: is more than --queue-mb {self.queue_mb}. Lower it."
            )

    def open_sandbox(self) -> Sandbox:
        """Open a sandbox as the options say."""
        return open_sandbox(self.sandbox, self.workers, self.sandbox_tier, self.python)

    def round_limits(self, limits: Limits) -> Limits:
        """Return the limits, with those that a worker starts with rounded up to a power of two.

        Each other value would start a separate worker. The limits of benchmarks stay as they are.
        """
        rounded = {
            name: min(1 << (getattr(limits, name) - 1).bit_length(), getattr(self.limits, name))
            for name in WORKER_LIMITS
        }
        return replace(limits, **rounded)

    def find_excess(self, limits: Limits) -> str:
        """Return which limit is more than the server allows, or an empty text."""
        for field in fields(Limits):
            most, value = getattr(self.limits, field.name), getattr(limits, field.name)
            if value > most:
                return f"limits.{field.name}: {value:g} is more than this server's {most:g}"
            if value < 0 or (value == 0 and field.name != "call_cpu_s"):
                return f"limits.{field.name}: must be above 0"
        # A worker that cannot start with its limit is tried again while all others wait.
        if limits.memory_mb < LEAST_MEMORY_MB:
            return f"limits.memory_mb: must be at least {LEAST_MEMORY_MB}"
        return ""
