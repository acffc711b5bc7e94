"""Write the names of this machine's standard library. Run as a separate process.

python -I -S _host_names.py OUTPUT
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

# Modules that open windows, print poems or are not meant for programs.
LEFT_OUT = {
    "antigravity", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "this", "tkinter",
    "turtle", "turtledemo", "venv",
}  # fmt: skip


def modules(name: str) -> Iterator[str]:
    """Yield a module's name and those of the modules in it."""
    yield name
    with contextlib.suppress(BaseException):
        for inner in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
            if not inner.name.endswith("__main__"):
                yield from modules(inner.name)


def names(module: str) -> list[str] | None:
    """Return a module's names, or None if it is for another system."""
    with contextlib.suppress(BaseException):
        return [name for name in dir(importlib.import_module(module)) if not name.startswith("_")]
    return None


def main() -> None:
    from encodings.aliases import aliases

    top = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    by_module = {inner: names(inner) for name in sorted(top - LEFT_OUT) for inner in modules(name)}
    by_module |= {name: [] for name in sorted(top & LEFT_OUT) if importlib.util.find_spec(name)}
    present = {name: names for name, names in by_module.items() if names is not None}
    encodings = [name.partition(".")[2] for name in present if name.startswith("encodings.")]
    known = sorted({*aliases, *aliases.values(), *encodings})
    text = f"MODULES = {json.dumps(present)}\nENCODINGS = {json.dumps(known)}\n"
    Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
