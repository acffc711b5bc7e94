"""A child process: its messages arrive whole, its silence is limited, and its end is explained."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from assay.work.process import ChildProcess

START = "import os, socket, sys; end = socket.socket(fileno=int(sys.argv[-1]));"
ECHO = START + "lines = end.makefile('rb')\nfor line in lines: end.sendall(line)"
SILENT = START + "import time; time.sleep(60)"


@contextlib.contextmanager
def child(script: str, **settings: float) -> Iterator[ChildProcess]:
    process = ChildProcess([sys.executable, "-S", "-c", script], **settings)  # type: ignore[arg-type]
    try:
        yield process
    finally:
        process.close()


def test_lines_and_what_follows_them_arrive_whole() -> None:
    long = b"x" * (3 << 20) + b"\n"
    with child(START + "end.sendall(b'short\\n' + b'x' * (3 << 20) + b'\\n12345rest\\n')") as one:
        assert one.receive_line(100) == b"short\n"
        assert one.receive_line(len(long)) == long
        assert one.receive(5) == b"12345"
        assert one.receive_line(100) == b"rest\n"
        with pytest.raises(EOFError):
            one.receive_line(100)


def test_what_is_sent_arrives() -> None:
    with child(ECHO) as one:
        for line in (b"first\n", b"second\n"):
            one.send(line)
            assert one.receive_line(100) == line


def test_a_line_without_an_end_is_not_read_for_ever() -> None:
    with child(START + "while True: end.sendall(b'x' * 1000)") as one, pytest.raises(EOFError):
        one.receive_line(100_000)


def test_objects_arrive() -> None:
    script = START + (
        "import pickle, struct; data = pickle.dumps({'a': [1, 2]});"
        "end.sendall(struct.pack('>Q', len(data)) + data)"
    )
    with child(script) as one:
        assert one.receive_object() == {"a": [1, 2]}


def test_silence_is_limited() -> None:
    began = time.monotonic()
    with child(SILENT, silence_s=0.3) as one, pytest.raises(TimeoutError):
        one.receive_line(100)
    assert time.monotonic() - began < 30


def test_a_process_that_works_is_waited_for() -> None:
    work = "import time\nwhile time.process_time() < 1: pass\nend.sendall(b'done\\n')"
    with child(f"{START}\n{work}", silence_s=0.3) as one:
        assert one.receive_line(100) == b"done\n"


@pytest.mark.parametrize(
    ("script", "explanation"),
    [
        ("os._exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
        ("end.close(); import time; time.sleep(60)", "it closed its connection"),
    ],
)
def test_an_end_is_explained(script: str, explanation: str) -> None:
    with child(START + script) as one:
        with pytest.raises(EOFError):
            one.receive(1)
        assert one.explain_end(2.0 if "exit" in script or "kill" in script else 0.1) == explanation


def test_its_input_ends_with_the_connection() -> None:
    """A child that waits for the end of its input ends by itself and is not killed."""
    script = START + "end.sendall(b'ready\\n'); os.read(0, 1); os._exit(7)"
    with child(script) as one:
        one.receive_line(100)
        one.close(20.0)
        assert one.wait(0.0) == 7


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/no/such/command"])


def test_a_kill_wakes_the_thread_that_receives() -> None:
    with child(SILENT) as one:
        one.kill()
        with pytest.raises(EOFError):
            one.receive(1)
        assert one.explain_end(1.0) == signal.SIGKILL.name
