"""The command line as a whole: sections, summaries, and what is imported when."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from assay.cli._groups import LONGEST_SUMMARY
from assay.cli.main import HOMES, SECTIONS, cli


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", HOMES)
def test_a_command_has_the_name_it_is_listed_by(name: str) -> None:
    assert command(name).name == name


@pytest.mark.parametrize("name", HOMES)
def test_no_summary_is_cut_off(name: str) -> None:
    summary = command(name).get_short_help_str(LONGEST_SUMMARY)
    assert summary
    assert not summary.endswith("...")


@pytest.mark.parametrize("name", ["sandbox", "env", "data"])
def test_a_group_shows_whole_summaries(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"]).output
    assert "..." not in shown.partition("\nCommands:")[2]


def test_the_help_lists_every_section_and_command() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    for section, names in SECTIONS.items():
        assert f"\n{section}:\n" in shown
        for name in names:
            assert f"\n  {name} " in shown


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["evaluate"])
    assert result.exit_code == 2
    assert "No such command 'evaluate'" in result.output


def test_the_version_is_printed_without_importing_a_command() -> None:
    script = (
        "import sys; sys.argv[1:] = ['--version']\n"
        "from assay.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m in ('rich', 'numpy', 'yaml', 'assay.pipeline')))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert printed[0].startswith("assay, version ")
    assert printed[1] == "[]"
