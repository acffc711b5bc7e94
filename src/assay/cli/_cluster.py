"""The option ``--ray``, and the site that it names."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from assay.cli._groups import CLUSTER, option
from assay.pipeline.site import THIS_MACHINE, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.progress import Reporter

LOCAL = "local"  # what --ray means without an address

ray = option(
    "--ray",
    group=CLUSTER,
    is_flag=False,
    flag_value=LOCAL,
    default="",
    metavar="[ADDRESS]",
    help="Generate and judge on the nodes of a Ray cluster: HOST:PORT, or auto for the running "
    "cluster of this machine. Without an address, start a cluster on this machine. Default: no "
    "cluster.",
)


@contextlib.contextmanager
def open_site(address: str, reporter: Reporter) -> Iterator[Site]:
    """Yield where the work is done: a cluster if there is an address, otherwise this machine."""
    if not address:
        yield THIS_MACHINE
        return
    from assay.cluster import open_cluster

    with open_cluster(address, reporter.note) as site:
        yield site
