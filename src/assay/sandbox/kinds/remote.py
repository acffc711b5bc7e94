"""Register the sandbox of a judge service. Its code is in a package that is above this one."""

from __future__ import annotations

import importlib

from assay.sandbox.sandbox import Sandbox, remote_sandboxes


@remote_sandboxes.register("remote")
def _open(place: str, workers: int, tier: str, python: str = "") -> Sandbox:
    opened: Sandbox = importlib.import_module("assay.judging.remote").open_remote(
        place, workers, tier, python
    )
    return opened
