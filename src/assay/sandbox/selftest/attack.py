"""Define an attack of the battery."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.types import Integrity

# Attack programs raise this error when something was allowed that must not be.
HELPERS = """
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
JUDGE = os.getppid() or 1  # in a pid namespace of its own a program's parent has no number
def refused(action, *arguments):
    try:
        result = action(*arguments)
    except (OSError, PermissionError):
        return
    raise RuntimeError(f"was allowed: {result!r}")
def refused_call(x86_64, aarch64, *arguments):
    number = x86_64 if os.uname().machine == "x86_64" else aarch64
    if libc.syscall(number, *arguments) != -1:
        raise RuntimeError("was allowed")
"""


@dataclass(frozen=True, slots=True)
class Attack:
    """Describe a hostile program and the reasons with which it may end. Others are breaches.

    In ``program``, ``@SECRET@``, ``@FOLDER@``, ``@TCP@``, ``@UDP@``, ``@ABSTRACT@`` and ``@MARK@``
    stand for a file and folder of the host, addresses that listen there, and a process name that
    must not be found on the host afterwards. ``not_promised`` names tiers, or ``shared`` for
    verdicts whose tests share the program's interpreter.
    """

    name: str
    program: str
    ends: tuple[str, ...] = ("passed",)
    tests: str = ""
    cpu_s: float = 10.0
    wall_s: float = 5.0
    not_promised: tuple[str, ...] = field(default=())
    integrity: Integrity = "shared"
