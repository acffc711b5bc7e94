"""CONTRIBUTING.md and the project's files for contributors say what is there."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
TEMPLATES = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github").rglob("*.y*ml"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda text: text.partition("\n")[0])
def test_templates_are_python_and_import_what_exists(template: str) -> None:
    for node in ast.walk(ast.parse(template)):
        if isinstance(node, ast.ImportFrom) and "mine" not in (node.module or ""):
            module = importlib.import_module(node.module or "")
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"


def test_every_named_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    named = set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)", GUIDE))
    assert {"test", "test-all", "lint", "container-engine", "release-check"} <= named
    assert named <= targets


def test_every_named_file_exists() -> None:
    named = re.findall(r"`((?:src|tests|docs)/[\w./]+?)/?`", GUIDE)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_markers_are_described_as_they_are_registered() -> None:
    registered = {
        line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]
    }
    table = GUIDE[GUIDE.index("| marker |") : GUIDE.index("Run one group")]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == registered
    default = PROJECT["tool"]["pytest"]["ini_options"]["addopts"]
    assert set(re.findall(r"not (\w+)", default)) == registered - {"model"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_and_forms_are_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_workflows_cover_every_python_that_is_declared() -> None:
    declared = {
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    }
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yaml").read_text())
    assert set(workflow["jobs"]["test"]["strategy"]["matrix"]["python"]) == declared


def test_the_changelog_has_the_usual_sections() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text
    usual = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for version in re.split(r"^## ", text, flags=re.M)[1:]:
        sections = re.findall(r"^### (.+)$", version, re.M)
        assert set(sections) <= usual
        assert len(set(sections)) == len(sections)
