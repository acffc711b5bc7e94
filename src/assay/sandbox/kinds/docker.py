"""Run programs in containers of Docker or podman: one per worker, with a fork server inside."""

from __future__ import annotations

from assay.errors import SandboxError
from assay.sandbox import Capabilities, sandboxes
from assay.sandbox.container.image import image_id
from assay.sandbox.container.runtime import RuntimeGoneError, find_runtime
from assay.sandbox.container.worker import INTERPRETER, ContainerServers
from assay.sandbox.environments import interpreters
from assay.sandbox.host.fork_servers import PROBE, ForkServerSandbox, settings_for
from assay.sandbox.host.local import START_S
from assay.sandbox.host.tiers import CONTAINER, PODMAN
from assay.sandbox.host.worker import Start, Worker, WorkerSettings
from assay.types import Job
from assay.work.machine import usable_cores

RUNTIME_BACK_S = 60.0  # a runtime that is restarted takes this long at most


class DockerSandbox(ForkServerSandbox):
    """Warm containers. Each ends with the harness, however that ends."""

    def __init__(self, workers: int) -> None:
        self._runtime = find_runtime()
        self._image = image_id(self._runtime)
        self._runtime.remove_leftovers()
        self._tier = PODMAN if self._runtime.is_podman() else CONTAINER
        settings = self._settings(PROBE)
        servers = ContainerServers(self._runtime, self._image, settings)
        self._python = servers.python
        super().__init__(workers, Worker(settings, servers))

    def capabilities(self) -> Capabilities:
        tier = self._tier
        guarantees = (*tier.guarantees, f"image {self._image}")
        return Capabilities(
            "docker", tier.name, self._python, guarantees, tier.gaps, image=self._image
        )

    def _settings(self, job: Job) -> WorkerSettings:
        if job.environment:
            raise SandboxError(
                f"environment '{job.environment}': not in the image. Use --sandbox process."
            )
        return settings_for(job, CONTAINER.name, Start(INTERPRETER, START_S))

    def _new_worker(self, settings: WorkerSettings) -> Worker:
        try:
            servers = ContainerServers(self._runtime, self._image, settings)
        except RuntimeGoneError:
            self._runtime.wait_until_there(RUNTIME_BACK_S)
            servers = ContainerServers(self._runtime, self._image, settings)
        return Worker(settings, servers)


@sandboxes.register("docker")
def _open(workers: int, tier: str, python: str = "") -> DockerSandbox:
    if tier != "auto":
        raise SandboxError(f"--sandbox-tier {tier}: containers have one tier. Omit the option.")
    opened = DockerSandbox(workers or usable_cores())
    interpreters.require(python, opened, "Build an image with the other version")
    return opened
