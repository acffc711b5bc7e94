"""Restrict access to files by Landlock rules."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from . import kernel

SYS_CREATE, SYS_ADD_RULE, SYS_RESTRICT = 444, 445, 446
CREATE_VERSION, RULE_PATH_BENEATH = 1, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READ, EVERY = EXECUTE | READ_FILE | READ_DIR, (1 << 16) - 1
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP = 3  # bind and connect
SCOPES = 3  # abstract unix sockets, signals
SCOPE_SIGNAL = 2
WITH_SCOPES = 6
# How many file-system rights each version of the interface knows.
RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}


def version() -> int:
    """Return the version of the kernel's Landlock interface, or 0 if there is none."""
    try:
        return kernel.syscall("landlock", SYS_CREATE, None, 0, CREATE_VERSION)
    except OSError:
        return 0


class Rules:
    """Restrictions of access to files. Prepared once, so that each program only has to enter it.

    ``listed`` are folders whose names can be listed, including everything below. ``alone`` also
    forbids TCP, and signals or abstract sockets to processes outside, for tiers without a namespace
    that does so.
    """

    def __init__(
        self,
        readable: Iterable[str],
        writable: Iterable[str],
        listed: Iterable[str] = (),
        *,
        alone: bool,
    ) -> None:
        abi = version()
        self._ruleset = -1
        if abi == 0:
            return
        every = (1 << RIGHTS_BY_VERSION.get(abi, 16)) - 1
        self._ruleset = _create(every, TCP, SCOPES) if alone else _create(every, 0, 0)
        for paths, rights in ((readable, READ), (writable, EVERY), (listed, READ_DIR)):
            for path in paths:
                place = os.open(path, os.O_PATH)
                _allow(self._ruleset, place, rights & every)
                os.close(place)

    def enter(self) -> None:
        """Restrict this process, and all it starts, to what the rules allow."""
        if self._ruleset >= 0:
            kernel.syscall("landlock_restrict_self", SYS_RESTRICT, self._ruleset, 0)


def restrict_signals() -> None:
    """Restrict signals from here to processes that are started from now on."""
    _restrict(_create(0, 0, SCOPE_SIGNAL))


def _create(files: int, network: int, scopes: int) -> int:
    attributes = struct.pack("QQQ", files, network, scopes)
    size = 24 if scopes else 16 if network else 8
    return kernel.syscall("landlock_create_ruleset", SYS_CREATE, attributes, size, 0)


def _allow(ruleset: int, place: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= FILE_RIGHTS
    if not rights:
        return
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place))
    kernel.syscall("landlock_add_rule", SYS_ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0)


def _restrict(ruleset: int) -> None:
    kernel.syscall("landlock_restrict_self", SYS_RESTRICT, ruleset, 0)
    os.close(ruleset)
