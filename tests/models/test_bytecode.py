"""Compiled modules of engines are kept where Python itself would not keep them."""

from __future__ import annotations

import importlib
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from assay.models.workers.bytecode import bytecode_variables
from assay.models.workers.process import make_environment

PACKAGE = "an_uncompiled_package"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that is not compiled, on a machine where Python writes no compiled modules."""
    code = tmp_path / "packages" / PACKAGE / "__init__.py"
    code.parent.mkdir(parents=True)
    code.write_text("from an_uncompiled_package import part\n")
    (code.parent / "part.py").write_text("")
    monkeypatch.syspath_prepend(str(code.parent.parent))
    importlib.invalidate_caches()
    monkeypatch.setenv("PYTHONPATH", str(code.parent.parent))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    return code.parent


def import_it() -> None:
    environment = {**os.environ, **bytecode_variables(PACKAGE)}
    subprocess.run([sys.executable, "-c", f"import {PACKAGE}"], env=environment, check=True)


def test_a_process_keeps_what_it_compiled_in_the_cache_folder(package: Path) -> None:
    import_it()
    kept = sorted((package.parents[1] / "cache" / "bytecode").rglob("*.pyc"))
    ours = [file for file in kept if file.parent.name == PACKAGE]
    assert [file.name.partition(".")[0] for file in ours] == ["__init__", "part"]
    assert not (package / "__pycache__").exists()
    written = ours[1].stat().st_mtime_ns
    import_it()
    assert ours[1].stat().st_mtime_ns == written  # it was used, not compiled again


def test_a_changed_module_is_compiled_again(package: Path) -> None:
    import_it()
    (package / "part.py").write_text("raise SystemExit('changed')\n")
    with pytest.raises(subprocess.CalledProcessError):
        import_it()


def test_a_compiled_package_is_left_alone(package: Path) -> None:
    py_compile.compile(str(package / "__init__.py"))
    assert bytecode_variables(PACKAGE) == {}


@pytest.mark.usefixtures("package")
def test_python_keeps_them_itself_if_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    assert bytecode_variables(PACKAGE) == {}


def test_a_folder_that_cannot_be_written_needs_the_cache(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != package)
    assert "PYTHONPYCACHEPREFIX" in bytecode_variables(PACKAGE)


def test_the_folder_of_the_user_comes_first(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(package))
    assert bytecode_variables(PACKAGE) == {}


def test_a_package_that_is_not_installed_needs_nothing() -> None:
    assert bytecode_variables("no_such_package") == {}


def test_engines_get_these_variables(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = bytecode_variables(PACKAGE)
    monkeypatch.setattr("assay.models.workers.process.bytecode_variables", lambda: wanted)
    environment = make_environment({"A": "b"})
    assert environment["PYTHONPYCACHEPREFIX"] == str(package.parents[1] / "cache" / "bytecode")
    assert environment["PYTHONDONTWRITEBYTECODE"] == ""  # which is as if it was not set
    assert environment["A"] == "b"
