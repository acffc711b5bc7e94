"""Compiled modules of engines are kept where Python itself would not keep them."""

from __future__ import annotations

import importlib
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from assay.errors import DataError
from assay.models.workers.process import bytecode_variables, make_environment

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
    assert (package.parents[1] / "cache" / "bytecode").stat().st_mode & 0o077 == 0
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


def test_packages_of_another_version_have_another_folder(package: Path) -> None:
    """The time and size of a module can be the same in two versions of an image."""
    (package.parent / "a-1.0.dist-info").mkdir()
    before = bytecode_variables(PACKAGE)
    assert bytecode_variables(PACKAGE) == before
    (package.parent / "a-1.0.dist-info").rename(package.parent / "a-1.1.dist-info")
    assert bytecode_variables(PACKAGE)["PYTHONPYCACHEPREFIX"] != before["PYTHONPYCACHEPREFIX"]


def test_a_folder_that_others_can_write_to_is_refused(package: Path) -> None:
    folder = package.parents[1] / "cache" / "bytecode"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    folder.chmod(0o777)
    with pytest.raises(DataError, match="can be written by other users"):
        bytecode_variables(PACKAGE)


def test_a_relative_cache_folder_is_made_absolute(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(package.parents[1])
    monkeypatch.setenv("ASSAY_CACHE_DIR", "cache")
    kept = bytecode_variables(PACKAGE)["PYTHONPYCACHEPREFIX"]
    assert kept.startswith(str(package.parents[1] / "cache" / "bytecode"))


def test_without_a_place_nothing_is_kept(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package.parents[1] / "file").write_text("")
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(package.parents[1] / "file" / "cache"))
    assert bytecode_variables(PACKAGE) == {}


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


def test_a_stand_in_without_a_file_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a_stand_in", ModuleType("a_stand_in"))
    assert bytecode_variables("a_stand_in") == {}


def test_engines_get_these_variables(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = bytecode_variables(PACKAGE)
    monkeypatch.setattr("assay.models.workers.process.bytecode_variables", lambda: wanted)
    environment = make_environment({"A": "b"})
    kept = Path(environment["PYTHONPYCACHEPREFIX"])
    assert kept.parent == package.parents[1] / "cache" / "bytecode"
    assert environment["PYTHONDONTWRITEBYTECODE"] == ""  # which is as if it was not set
    assert environment["A"] == "b"
