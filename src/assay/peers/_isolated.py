"""Run by ``isolation`` in namespaces of its own: takes everything away, then becomes the command.

What the command runs may be root outside as well, so that read-only files are not enough: devices
and sockets can be written to all the same, and a capability would undo it all.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

# Private and empty. Under /run are the sockets of whoever does things for others.
EMPTY = ("/tmp", "/dev", "/run")
DEVICES = ("null", "zero", "full", "random", "urandom")
REFUSED = 99

# Kernel numbers, the same on all architectures; see mount(2), open_tree(2), prctl(2), capset(2).
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
MS_NOSUID, MS_NODEV = 2, 4
READ_ONLY, NO_SUID, NO_DEVICES = 1, 2, 4
PRIVATE = 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITIES_VERSION_3, CAPABILITIES = 0x20080522, 64

libc = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    asked: dict[str, Any] = json.loads(sys.argv[1])
    try:
        _forbid_namespaces()
        _take_files_away(asked["folder"], asked["readable"], asked["sockets"])
        _drop_capabilities()
        os.chdir(asked["folder"])
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
    os.execvp(asked["command"][0], asked["command"])


def _forbid_namespaces() -> None:
    """A new one would give capabilities back, if over less."""
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _take_files_away(folder: str, readable: list[str], sockets: list[str]) -> None:
    """What stays is picked up first and put back at the end, outer folders before inner ones."""
    _set_attributes(AT_FDCWD, "/", 0, propagation=PRIVATE)
    devices = {name: _picked_up(f"/dev/{name}") for name in DEVICES}
    for device in devices.values():  # their owner may not change their rights
        _set_attributes(device, "", READ_ONLY | NO_SUID)
    trees = {path: _picked_up(path) for path in [*filter(_would_vanish, readable), folder]}
    for path, tree in trees.items():
        kept = 0 if path == folder else READ_ONLY
        _set_attributes(tree, "", kept | NO_SUID | NO_DEVICES)
    _set_attributes(AT_FDCWD, "/", READ_ONLY | NO_SUID | NO_DEVICES)
    for path in filter(_is_there, EMPTY):  # not every system has /run
        _mount_empty(path)
    _furnish_dev(devices)
    for path in sorted(trees):
        Path(path).mkdir(parents=True, exist_ok=True)
        _put(trees[path], path)
    for path in sockets:
        if Path(path).is_socket():
            _put(_picked_up("/dev/null"), path)
    if _is_there("/run"):
        _set_attributes(AT_FDCWD, "/run", READ_ONLY, recursive=False)


def _furnish_dev(devices: dict[str, int]) -> None:
    for name, device in devices.items():
        Path("/dev", name).touch()
        _put(device, f"/dev/{name}")
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        Path("/dev", name).symlink_to(f"/proc/self/fd{target}")
    Path("/dev/shm").mkdir()
    _set_attributes(AT_FDCWD, "/dev", READ_ONLY, recursive=False)
    _mount_empty("/dev/shm")


def _would_vanish(path: str) -> bool:
    return any(path.startswith(f"{empty}/") for empty in EMPTY)


def _is_there(path: str) -> bool:
    return Path(path).is_dir()


def _picked_up(path: str) -> int:
    """A copy of what is mounted there and below, in no place yet."""
    flags = OPEN_TREE_CLONE | os.O_CLOEXEC | AT_RECURSIVE
    return _call(f"open_tree {path}", OPEN_TREE, AT_FDCWD, os.fsencode(path), flags)


def _put(tree: int, path: str) -> None:
    where = (AT_FDCWD, os.fsencode(path), MOVE_MOUNT_F_EMPTY_PATH)
    _call(f"move_mount {path}", MOVE_MOUNT, tree, b"", *where)
    os.close(tree)


def _set_attributes(
    descriptor: int, path: str, attributes: int, *, propagation: int = 0, recursive: bool = True
) -> None:
    wanted = struct.pack("=4Q", attributes, 0, propagation, 0)
    flags = (AT_RECURSIVE if recursive else 0) | (0 if path else AT_EMPTY_PATH)
    place = (descriptor, os.fsencode(path), flags)
    _call(f"mount_setattr {path}", MOUNT_SETATTR, *place, wanted, len(wanted))


def _mount_empty(path: str) -> None:
    if libc.mount(b"none", os.fsencode(path), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=1777"):
        raise _failure(f"mount {path}")


def _drop_capabilities() -> None:
    for capability in range(CAPABILITIES):  # the last ones do not exist yet
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise _failure("no_new_privs")
    header = struct.pack("=Ii", CAPABILITIES_VERSION_3, 0)
    if libc.capset(header, struct.pack("=6I", *[0] * 6)):
        raise _failure("capset")


def _call(what: str, number: int, *arguments: int | bytes) -> int:
    whole = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    told = int(libc.syscall(ctypes.c_long(number), *whole))
    if told < 0:
        raise _failure(what)
    return told


def _failure(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main()
