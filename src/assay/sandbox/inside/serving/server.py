"""Isolate this process, then serve as keeper of programs or as their oracle."""

from __future__ import annotations

import _imp
import contextlib
import gc
import importlib
import os
import signal
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

from ..judging import wire
from ..judging.messages import Result
from .messages import SCRIPTS, About, RoleName, Seen, Settings, read_beginning
from .sample import JOBS, LINK, REPORTS
from .watch import HarnessGoneError

# What programs import most. The rest is imported by each program itself.
WARM = (
    "bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "re",
    "string", "typing",
)  # fmt: skip
MOST_DESCRIPTORS = 1 << 20
HIDDEN = "<sandbox>"  # the file of all functions of this package


class Role(Protocol):
    """A role that answers messages one by one. ``prepare`` is called early, before each."""

    def prepare(self) -> None: ...
    def judge(self, message: list[Any]) -> Seen | Result: ...


def main() -> None:
    name, link, settings = read_beginning(wire.receive(0))
    _forget_the_parent(link)
    try:
        role, about = ROLES[name](settings)
    except Exception as error:
        wire.send(REPORTS, f"{type(error).__name__}: {error}")
        return
    wire.send(REPORTS, about)
    with contextlib.suppress(EOFError, HarnessGoneError):
        while True:
            answer: Seen | Result | str
            try:
                role.prepare()
                answer = role.judge(wire.receive(JOBS))
            except (EOFError, HarnessGoneError):
                raise
            except Exception as error:
                answer = f"{type(error).__name__}: {error}"
            wire.send(REPORTS, answer)
            if isinstance(answer, str):
                return


def _keeper(settings: Settings) -> tuple[Role, About]:
    # Done while files are accessible.
    from ..isolation.machine import Machine
    from . import keeper, tiers

    if settings.integrity == SCRIPTS:
        from . import script_keeper
    for name in (*WARM, *settings.imports):
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("an import started a thread, which no fork survives")
    machine = Machine()
    hide_paths()
    place = tiers.start(settings)
    about = About(place.limit.name if place.limit else "")
    if settings.integrity == SCRIPTS:
        return script_keeper.ScriptKeeper(place, machine), about
    return keeper.Keeper(place, machine, apart=settings.integrity == "separated"), about


def _oracle(settings: Settings) -> tuple[Role, About]:
    from . import oracle, tiers

    for name in WARM:
        importlib.import_module(name)
    hide_paths()
    tiers.isolate_oracle(settings)
    return oracle.Oracle(), About()


def hide_paths() -> None:
    """Replace the path of this code on the host, which frames, tracebacks and modules would show.

    Call it after all imports of this package. Functions that no module names are found too.
    """
    package = __name__.partition(".")[0]
    folder = os.path.dirname(sys.modules[package].__path__[0])
    for one in gc.get_objects():
        if type(one) is types.FunctionType and one.__code__.co_filename.startswith(folder):
            # As importlib does for cached code.
            _imp._fix_co_filename(one.__code__, HIDDEN)  # type: ignore[attr-defined]
    for name, module in sys.modules.items():
        if name.partition(".")[0] == package:
            module.__file__ = HIDDEN
            vars(module)["__cached__"] = module.__spec__ = module.__loader__ = None
            if hasattr(module, "__path__"):
                module.__path__ = []
    sys.path[:] = [path for path in sys.path if not path.startswith(folder)]
    for path in [path for path in sys.path_importer_cache if path.startswith(folder)]:
        del sys.path_importer_cache[path]


ROLES: dict[RoleName, Callable[[Settings], tuple[Role, About]]] = {
    "keeper": _keeper,
    "oracle": _oracle,
}


def _forget_the_parent(link: int) -> None:
    """Make nothing depend on how the harness was started: signals, umask, descriptors."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs expect it
    os.umask(0o022)
    above = max(link, LINK) + 1
    for offset, descriptor in enumerate((0, 1, link)):
        os.dup2(descriptor, above + offset)
    for offset, fixed in enumerate((JOBS, REPORTS, LINK)):
        os.dup2(above + offset, fixed)
    os.closerange(LINK + 1, MOST_DESCRIPTORS)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    os.close(null)
