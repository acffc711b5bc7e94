"""Data folders for tests of commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assay.datasets.catalogue import locate
from assay.datasets.pinned import HUMANEVAL


@pytest.fixture
def nothing(tmp_path: Path) -> dict[str, str]:
    """An environment in which no data is anywhere."""
    (tmp_path / "empty").mkdir()
    return {"ASSAY_CACHE_DIR": str(tmp_path / "cache"), "ASSAY_DATA_DIR": str(tmp_path / "empty")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder that has HumanEval."""
    target = tmp_path / "data" / HUMANEVAL.path
    target.parent.mkdir(parents=True)
    shutil.copyfile(locate(HUMANEVAL), target)
    return tmp_path / "data"
