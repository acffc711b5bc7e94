"""The distribution's name: on the public index, ``assay`` has been another project since 2014."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from assay.errors import DISTRIBUTION, install_hint

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "docs", "contracts")
SUFFIXES = {".py", ".md", ".toml", ".yaml", ".yml"}
FILES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "Makefile", "pyproject.toml")),
    *(p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES),
]
FILES.remove(Path(__file__))  # it has the wrong name in examples
WRONG = re.compile(r"(?<![\w.-])assay\[|pip install\s+(?:-\S+\s+)*['\"]?assay(?![\w-])")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_nothing_names_the_other_project() -> None:
    found = {
        str(path.relative_to(ROOT)): match[0]
        for path in FILES
        if (match := WRONG.search(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text", ["pip install assay", "pip install -U 'assay[hf]'", "`assay[gguf]`"]
)
def test_the_wrong_name_would_be_found(text: str) -> None:
    assert WRONG.search(text)


def test_one_name() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert PROJECT["scripts"] == {"assay": "assay.cli:main"}


def test_every_hint_names_an_extra() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    extras = set(re.findall(r"install_hint\('(\w+)'\)", sources))
    assert extras
    assert extras <= PROJECT["optional-dependencies"].keys()
    assert install_hint("gguf") == "pip install 'assay-eval[gguf]'"
    assert sources.count("pip install '") == 1  # all messages have it from one place


def test_versions_of_xllamacpp_that_are_refused_at_run_time_are_not_installed() -> None:
    (wanted,) = (
        requirement
        for line in PROJECT["optional-dependencies"]["gguf"]
        if (requirement := Requirement(line)).name == "xllamacpp"
    )
    source = (ROOT / "src" / "assay" / "models" / "engines" / "llamacpp" / "native.py").read_text()
    named = re.search(r"xllamacpp (\d+\.\d+)\.?\"", source)
    assert named is not None
    assert f"{named[1]}.11549" in wanted.specifier  # which the tests are run with
    assert "2026.9.1" not in wanted.specifier
    assert "2026.11.1" not in wanted.specifier
    assert "2027.1.1" not in wanted.specifier
