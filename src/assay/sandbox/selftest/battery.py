"""Run the attacks against a sandbox and check the host afterwards."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from assay.data.failures import explain_failure
from assay.sandbox import Sandbox
from assay.sandbox.selftest.attacks import BATTERY
from assay.sandbox.selftest.attacks_on_limits import Attack
from assay.types import Job, Limits, Program, Tests, Verdict

HONEST = (
    "def f(x):\n    open('honest', 'w').write(str(x + 1))\n    return int(open('honest').read())\n"
)
HONEST_WITHOUT_FILES = "def f(x):\n    return x + 1\n"
HONEST_TESTS = "assert f(1) == 2"
UNTRIED, LACKS = "unsupported", "the guest lacks"  # what cannot start an attack is contained


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of one attack."""

    attack: str
    promised: bool
    contained: bool
    observed: str


def run_battery(sandbox: Sandbox, attacks: tuple[Attack, ...] = BATTERY) -> Iterator[Observation]:
    """Yield one observation per attack. An honest program runs after each."""
    capabilities = sandbox.capabilities()
    tier, honest_program = capabilities.tier, HONEST
    if not capabilities.files:
        honest_program = HONEST_WITHOUT_FILES
    with _Host() as host:
        for attack in attacks:
            hostile = _judge(sandbox, host.fill(attack.program), attack)
            harmless = replace(attack, tests=HONEST_TESTS, cpu_s=10, wall_s=30)
            honest = _judge(sandbox, honest_program, harmless)
            harm = host.harm()
            if honest.status != "pass":
                harm = harm or f"the next program: {honest.reason} {explain_failure(honest)}"
            untried = hostile.reason == UNTRIED or hostile.detail.startswith(LACKS)
            contained = (untried or hostile.reason in attack.ends) and not harm
            promised = not {tier, attack.integrity}.intersection(attack.not_promised)
            observed = harm or f"{hostile.status}: {hostile.reason}"
            if not contained and not harm:
                observed += f" {explain_failure(hostile)}"
            yield Observation(attack.name, promised, contained, observed)


def _judge(sandbox: Sandbox, program: str, attack: Attack) -> Verdict:
    limits = Limits(cpu_s=attack.cpu_s, wall_s=attack.wall_s)
    tests = Tests("f", attack.tests, integrity=attack.integrity)
    (verdict,) = sandbox.judge([Job("attack", 0, Program(program, "attack"), tests, limits)])
    return verdict


class _Host:
    """Bait on the host: a file, a folder, listening addresses, a name for processes."""

    def __enter__(self) -> _Host:
        self._folder = tempfile.TemporaryDirectory(prefix="assay-bait-")
        folder = Path(self._folder.name)
        folder.chmod(0o777)
        self._secret = folder / "secret"
        self._secret.write_text("secret")
        self._secret.chmod(0o666)
        self._before = self._state()
        self._mark = f"assay{os.urandom(4).hex()}"  # of this battery alone; 15 letters at most
        self._heard: list[str] = []
        self._sockets = {
            "@TCP@": socket.create_server(("127.0.0.1", 0)),
            "@UDP@": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            "@ABSTRACT@": socket.socket(socket.AF_UNIX),
        }
        self._sockets["@UDP@"].bind(("127.0.0.1", 0))
        self._sockets["@ABSTRACT@"].bind(f"\0{self._mark}")
        self._sockets["@ABSTRACT@"].listen()
        for name, listening in self._sockets.items():
            threading.Thread(target=self._listen, args=(name, listening), daemon=True).start()
        os.environ["ASSAY_CANARY"] = "1"
        return self

    def __exit__(self, *_: object) -> None:
        del os.environ["ASSAY_CANARY"]
        for listening in self._sockets.values():
            with contextlib.suppress(OSError):
                # Otherwise the waiting thread would keep it open.
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        self._folder.cleanup()

    def fill(self, program: str) -> str:
        words = {
            "@SECRET@": str(self._secret),
            "@FOLDER@": str(self._secret.parent),
            "@TCP@": repr(self._sockets["@TCP@"].getsockname()),
            "@UDP@": repr(self._sockets["@UDP@"].getsockname()),
            "@ABSTRACT@": self._mark,
            "@MARK@": self._mark,
        }
        for word, value in words.items():
            program = program.replace(word, value)
        return program

    def harm(self) -> str:
        """Return what an attack did to the host, or an empty text if it did nothing."""
        if self._state() != self._before:
            return "a host file was changed"
        if self._heard:
            return f"a message reached the host by {self._heard.pop()}"
        if any(_name_of(process) == self._mark for process in Path("/proc").iterdir()):
            return "a process was left on the host"
        return ""

    def _state(self) -> object:
        status = self._secret.stat()
        names = sorted(p.name for p in self._secret.parent.iterdir())
        return self._secret.read_text(), status.st_mode, status.st_mtime_ns, status.st_nlink, names

    def _listen(self, name: str, listening: socket.socket) -> None:
        try:
            while True:
                if name == "@UDP@":
                    listening.recv(1)
                else:
                    listening.accept()[0].close()
                self._heard.append(name.strip("@"))
        except OSError:  # closed: the battery is over
            return


def _name_of(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""
