"""What tests of the openai engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.models.engines.openai import session as gate
from tests.models.faulty_server import FaultyServer, serving


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """No real pauses, and nothing from the user's own settings."""
    monkeypatch.setattr(gate, "FIRST_PAUSE_S", 0.002)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with serving() as served:
        yield served
