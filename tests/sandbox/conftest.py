"""The container engine, started once for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox.container.image import BASE, build_image
from tests.sandbox.container_engine import OwnEngine, running_engine


@pytest.fixture(scope="package")
def engine() -> Iterator[OwnEngine | None]:
    """With an image made of this machine's Python; None if the engine is somebody else's."""
    with running_engine() as found:
        build_image(BASE, Path("host"), lambda _: None)
        yield found
