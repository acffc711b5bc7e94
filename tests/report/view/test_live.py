"""Changes of a results folder reach pages that are open."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.report.pages import open_sources
from assay.report.view.changes import Counter, Progress
from assay.report.view.live import MOST_RUNS, Changes, LiveSite, Subscription
from assay.runs import Result
from tests.report.view.conftest import Serve
from tests.report.view.test_server import open_stream


def unfinish(results: Path, run: str, keep: int) -> tuple[Path, list[bytes]]:
    """Make a run one that has just begun. Return its file of verdicts, and the lines to come."""
    (results / f"{run}.json").unlink()
    verdicts = results / run / "verdicts.jsonl"
    lines = verdicts.read_bytes().splitlines(keepends=True)
    verdicts.write_bytes(b"".join(lines[:keep]))
    return verdicts, lines[keep:]


def append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(lines))


def changes(subscription: Subscription, timeout_s: float = 5.0) -> list[str]:
    """Return the keys of changed pages. What is known at the beginning is none of them."""
    found = subscription.take(timeout_s)
    if found is not None and not found.keys and found.progress:
        found = subscription.take(timeout_s)
    return list(found.keys) if found else []


def test_a_growing_run_has_a_growing_page(results: Path, scored: Result) -> None:
    verdicts, rest = unfinish(results, scored.run, 3)
    site = LiveSite(results)
    key = f"run/{scored.run}"
    assert "3</span>" in site.section(key).html
    with site.subscribed() as subscription:
        site.poll()
        assert changes(subscription, 0.05) == []
        append(verdicts, [*rest[:4], rest[4][:10]])  # a writer may be in the middle of a line
        site.poll()
        assert changes(subscription) == [key]
    assert "7</span>" in site.section(key).html
    judged = site.block(key)["words"]["status"]
    assert [judged["of"][at] for at in judged["at"]].count("not-judged") == 13


def test_verdicts_are_counted_from_the_beginning(results: Path, scored: Result) -> None:
    verdicts, rest = unfinish(results, scored.run, 3)
    site = LiveSite(results)
    key = f"run/{scored.run}"
    assert f'data-progress="{key}"' in site.section("overview").html
    with site.subscribed() as subscription:
        assert subscription.take(0) == Changes(progress={key: Progress(3, 20)})
        append(verdicts, [*rest[:4], rest[4][:10]])
        site.poll()
        assert subscription.take(0) == Changes((key,), {key: Progress(7, 20)})
        append(verdicts, [rest[4][10:], *rest[5:], rest[0]])  # the last one is judged again
        site.poll()
        assert subscription.take(0) == Changes((key,), {key: Progress(20, 20)})
        (results / scored.path.name).write_text(scored.path.read_text())
        site.poll()
        found = subscription.take(0)
        assert found is not None
        assert not found.progress
    with site.subscribed() as late:
        assert late.take(0) == Changes()


def test_a_file_that_is_replaced_is_counted_again(results: Path, scored: Result) -> None:
    verdicts, rest = unfinish(results, scored.run, 12)
    (run,) = open_sources([str(results)], results).runs
    counter = Counter()
    assert counter.measure(run) == Progress(12, 20)
    verdicts.write_bytes(b"".join(rest[:2]))
    assert counter.measure(run) == Progress(2, 20)
    verdicts.unlink()
    assert counter.measure(run) == Progress(0, 20)


def test_a_run_that_begins_and_one_that_ends_change_the_lists(
    results: Path, scored: Result
) -> None:
    site = LiveSite(results)
    with site.subscribed() as subscription:
        shutil.copytree(results / scored.run, results / "mini_20300101_000000")
        site.poll()
        assert changes(subscription) == ["overview", "board", "run/mini_20300101_000000"]
        document = json.loads(scored.path.read_text()) | {"run": "mini_20300101_000000"}
        (results / "mini_20300101_000000.json").write_text(json.dumps(document))
        site.poll()
        assert changes(subscription) == ["overview", "board", "run/mini_20300101_000000"]
        shutil.rmtree(results / "mini_20300101_000000")
        (results / "mini_20300101_000000.json").unlink()
        site.poll()
        assert changes(subscription) == ["overview", "board"]
    with pytest.raises(UsageError):
        site.section("run/mini_20300101_000000")


def test_an_empty_folder_fills(tmp_path: Path, scored: Result) -> None:
    site = LiveSite(tmp_path)
    assert "There are no runs" in site.section("overview").html
    shutil.copytree(scored.path.parent, tmp_path, dirs_exist_ok=True)
    site.poll()
    assert scored.run in site.section("overview").html


def test_files_are_read_once_for_many_clients(
    results: Path, scored: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = LiveSite(results)
    opened: list[str] = []
    read = os.open

    def watch(path: str, *rest: int, **more: int) -> int:
        if str(path).endswith("completions.jsonl"):
            opened.append(str(path))
        return read(path, *rest, **more)

    key = f"run/{scored.run}"
    site.section(key)  # how often one page reads them
    monkeypatch.setattr(os, "open", watch)
    LiveSite(results).section(key)
    once = len(opened)
    assert once
    fresh = LiveSite(results)
    opened.clear()
    threads = [threading.Thread(target=fresh.section, args=(key,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == once


def test_a_costly_page_is_not_announced_at_every_change(
    results: Path, scored: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts, rest = unfinish(results, scored.run, 3)
    site = LiveSite(results)
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    key = f"run/{scored.run}"
    with site._site_of(key):
        clock[0] += 2.0
    with site.subscribed() as subscription:
        append(verdicts, rest[:1])
        site.poll()
        assert changes(subscription, 0) == []
        clock[0] += 9.0
        site.poll()
        assert changes(subscription, 0) == [key]


def test_few_runs_are_kept_in_memory(results: Path, scored: Result) -> None:
    for number in range(MOST_RUNS + 3):
        shutil.copytree(results / scored.run, results / f"mini_20300101_{number:06d}")
    site = LiveSite(results)
    for link in site.links():
        if link.key.startswith("run/"):
            site.section(link.key)
    assert len(site._shown) == MOST_RUNS


def test_damage_is_reported_once_and_stops_nothing(results: Path) -> None:
    lines: list[str] = []

    class Notes:
        def note(self, text: str) -> None:
            lines.append(text)

    (results / "mini_20300101_000000.json").write_text("{")
    site = LiveSite(results, reporter=Notes())  # type: ignore[arg-type]
    (results / "mini_20300101_000001.json").write_text("{")
    site.poll()
    assert len(lines) == len(set(lines)) == 2


def events(connection: socket.socket) -> Iterator[list[str]]:
    """Yield the keys of every event of a stream."""
    received = b""
    while data := connection.recv(4096):
        received += data
        while b"\n\n" in received:
            event, _, received = received.partition(b"\n\n")
            if event.startswith(b"event: changed\ndata: "):
                yield json.loads(event.partition(b"data: ")[2])


def test_a_stream_of_events_follows_a_growing_run(
    serve: Serve, results: Path, scored: Result
) -> None:
    verdicts, rest = unfinish(results, scored.run, 3)
    server, client = serve()
    streams = [open_stream(server.port) for _ in range(3)]
    append(verdicts, rest[:5])
    key = f"run/{scored.run}"
    for stream in streams:
        assert next(events(stream)) == [key]
    assert "8</span>" in client.ask(f"/api/section?key={key}").json["html"]
    for stream in streams:
        stream.close()


def test_a_client_that_goes_is_forgotten(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.report.view.server.STILL_THERE_S", 0.1)
    server, _ = serve()
    stream = open_stream(server.port)
    assert server.site.is_watched
    stream.close()
    deadline = time.monotonic() + 10
    while server.site.is_watched:
        assert time.monotonic() < deadline
        time.sleep(0.05)
