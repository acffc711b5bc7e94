"""Choose the host's files that programs may read: the system's and Python's, no packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
# Alternatives are links into /usr: without them Debian has no awk.
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
PACKAGES = ("site-packages", "dist-packages")
# Where packages are installed below a folder that holds interpreters; "*" ends a prefix.
PACKAGE_PLACES = tuple(
    (*above, interpreter)
    for above in ((), ("lib*",), ("local", "lib*"), ("local", "*", "lib*"), ("*", "lib*"))
    for interpreter in ("python*", "pypy*")
)


def shown_paths() -> list[str]:
    """Return the host's folders and files that Python needs, none below another."""
    folders = system_folders()
    for folder in python_folders():
        real = os.path.realpath(folder)
        if not is_below(real, folders):
            folders.append(real)
    return folders + system_files()


def system_folders() -> list[str]:
    """Return the system's folders. Those that are links lead into the others."""
    return [path for path in SYSTEM_FOLDERS if os.path.isdir(path) and not os.path.islink(path)]


def system_files() -> list[str]:
    return [path for path in (*DEVICES, *SYSTEM_FILES) if os.path.exists(path)]


def python_folders() -> list[str]:
    """Return the folders of modules: the standard library and an environment's packages."""
    folders = [
        folder
        for prefix in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix))
        for name in ("lib", "lib64", "bin")
        if os.path.isdir(folder := f"{prefix}/{name}")
    ]
    return folders if sys.flags.no_site else [*folders, sys.prefix]


def hidden_folders(shown: Iterable[str]) -> list[str]:
    """Return the package folders below ``shown``, except those of an environment."""
    environment = [] if sys.flags.no_site else [os.path.realpath(sys.prefix)]
    packages = {
        os.path.realpath(f"{place}/{name}")
        for folder in shown
        for parts in PACKAGE_PLACES
        for place in _matching(folder, parts)
        for name in PACKAGES
        if os.path.isdir(f"{place}/{name}")
    }
    return sorted(path for path in packages if not is_below(path, environment))


def refuse_private(private: Iterable[str], shown: list[str], hidden: list[str]) -> None:
    """Raise OSError if a program could read a file that holds answers."""
    for path in map(os.path.realpath, private):
        if is_below(path, shown) and not is_below(path, hidden):
            raise OSError(
                f"programs would see {path}, which holds tests or their answers. "
                "Move it out of the system's and Python's folders"
            )


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of these folders or below one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def readable_pieces(shown: Iterable[str], hidden: list[str]) -> Iterator[str]:
    """Yield folders and files that together are ``shown`` without the hidden parts."""
    for path in shown:
        if is_below(path, hidden):
            continue
        if not any(is_below(folder, [path]) for folder in hidden):
            yield path
            continue
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        # A rule for a link would apply to its target, which may be anywhere.
        inner = [entry.path for entry in entries if not entry.is_symlink()]
        yield from readable_pieces(inner, hidden)


def _matching(folder: str, parts: tuple[str, ...]) -> Iterator[str]:
    if not parts:
        yield folder
        return
    first, *rest = parts
    try:
        names = os.listdir(folder) if first.endswith("*") else [first]
    except OSError:
        return
    for name in names:
        path = f"{folder}/{name}"
        if name.startswith(first.rstrip("*")) and os.path.isdir(path):
            yield from _matching(path, tuple(rest))
