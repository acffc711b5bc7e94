"""Run programs on another machine, by its judge service: ``--sandbox remote:URL``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from assay.data.tokens import read_token
from assay.errors import SandboxError
from assay.sandbox import Capabilities, run_here
from assay.sandbox.environments import interpreters
from assay.sandbox.remote.client import JudgeClient
from assay.sandbox.remote.exchange import Exchange, Names, Remote
from assay.sandbox.sandbox import remote_sandboxes
from assay.types import Cases, Job, Verdict

TOKEN_FILE = "ASSAY_JUDGE_TOKEN_FILE"
AHEAD = 8  # programs per worker of the service that are under way


class RemoteSandbox:
    """A sandbox whose workers belong to a judge service.

    Its kind names the service's kind, tier and version of assay. The kind is part of the protocol,
    so a run is never resumed by a service of another tier.
    """

    def __init__(self, url: str, workers: int, tier: str, token: str = "") -> None:
        self._client = JudgeClient(url, token or _token())
        self._remote = _read_about(self._client)
        self._ahead = AHEAD * (workers or self._remote.workers)
        self._names = Names()
        found = self._remote.judge
        if tier not in ("auto", found["tier"]):
            raise SandboxError(
                f"--sandbox-tier {tier}: the judge service {self._client.address} has the tier "
                f"{found['tier']}. Start it with --sandbox-tier {tier}, or omit the option."
            )

    def capabilities(self) -> Capabilities:
        judge, sandbox = self._remote.judge, self._remote.sandbox
        return Capabilities(
            kind=f"remote {judge['kind']}/{judge['tier']}, assay {judge['assay']}",
            tier=judge["tier"],
            python=judge["python"],
            guarantees=tuple(sandbox["guarantees"]),
            gaps=tuple(sandbox["gaps"]),
            files=sandbox["files"],
            refused=tuple(sandbox["refused"]),
            # Measured times are of that machine.
            image=f"{judge['image']} on {self._remote.node}".strip(),
        )

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        with closing(self._exchange().outcomes(jobs)) as outcomes:
            for verdict, _ in outcomes:
                yield verdict

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        with closing(self._exchange().outcomes(jobs)) as outcomes:
            yield from outcomes

    run_stage = run_here

    def close(self) -> None:
        """Break all connections. The service then drops what still waits."""
        self._client.close()

    def _exchange(self) -> Exchange:
        return Exchange(self._client, self._remote, self._names, self._ahead)


def _token() -> str:
    path = os.environ.get(TOKEN_FILE)
    return read_token(Path(path)) if path else ""


def _read_about(client: JudgeClient) -> Remote:
    """Return what a service says about itself."""
    data = client.about()
    return Remote(
        dict(data["judge"]), dict(data["sandbox"]), int(data["workers"]), int(data["batch"]),
        str(data["node"]),
    )  # fmt: skip


@remote_sandboxes.register("remote")
def _open(place: str, workers: int, tier: str, python: str = "") -> RemoteSandbox:
    sandbox = RemoteSandbox(place, workers, tier)
    interpreters.require(python, sandbox, f"Start the judge service with --python {python}")
    return sandbox
