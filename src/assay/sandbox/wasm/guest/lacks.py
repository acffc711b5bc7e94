"""List what other sandboxes have and this guest lacks: modules, files, threads, 64 bits.

Only what a text imports decides whether a program is unsupported (imports.py). What an error says
at run time is the program's own doing: it explains a failure and never takes one away.
"""

from __future__ import annotations

import errno
import opcode
import sys
from types import ModuleType, TracebackType
from typing import Any

from imports import Table
from inside.judging import judge

LACKS = "the guest lacks"
LIBRARY = ("/python/", "<frozen ")  # where the standard library's code comes from
# Errors of files, processes and sockets, which do not exist here: nothing else raises them.
FILES = {
    errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EBADF, errno.ENOSYS,
    errno.ENOTSUP, errno.EOPNOTSUPP, getattr(errno, "ENOTCAPABLE", errno.ENOSYS),
}  # fmt: skip
TOO_WIDE = "cannot fit 'int' into an index-sized integer"
# Raised by an operator: a sequence or number of more than 2 GiB, natively a MemoryError.
TOO_LARGE = {TOO_WIDE, "too many digits in integer"}
MESSAGES = {
    "RuntimeError": {
        "can't start new thread": "threads",
        "There is no current event loop in thread 'MainThread'.": "asyncio",
    },
    "NotImplementedError": {
        "This Python build lacks multiprocessing.synchronize, usually due to named semaphores"
        " being unavailable on this platform.": "processes"
    },
    "OverflowError": {
        "Python int too large to convert to C ssize_t": "sizes of more than 32 bits",
        "Python int too large to convert to C long": "sizes of more than 32 bits",
        TOO_WIDE: "sizes of more than 32 bits",
    },
}
ISLICE = " for islice() must be None or an integer: 0 <= x <= sys.maxsize."
UNKNOWN_ENCODING = "unknown encoding: "
DEEPEST = 10  # errors that are each the cause of the next


class Lacks:
    """All names of the host's library: modules with their names, and encodings."""

    def __init__(self, modules: dict[str, list[str]], encodings: list[str]) -> None:
        names = {
            module: {name for name in names if not hasattr(sys.modules[module], name)}
            for module, names in modules.items()
            if module in sys.modules
        }
        self.imports = Table({name for name in modules if name not in sys.modules}, names)
        self.encodings = {name for name in encodings if not _is_known(name)}

    def explain(self, error: BaseException) -> tuple[str, str] | None:
        """Return a verdict's reason and detail if something the guest lacks explains the error."""
        known = error
        for _ in range(DEEPEST):
            code, operation = _origin(error)
            by_library = code.startswith(LIBRARY)
            if operation == "RAISE_VARARGS" and not by_library:
                return None  # the program's own words
            if (
                type(error) is OverflowError
                and operation == "BINARY_OP"
                and str(error) in TOO_LARGE
            ):
                return "memory", f"OverflowError: {error}"
            if lack := self._lack(error):
                return judge.reason(known), f"{LACKS} {lack}: {judge.describe(known)}"
            if not by_library or error.__cause__ is None:
                return None
            error = error.__cause__
        return None

    def _lack(self, error: BaseException) -> str:
        kind = type(error)
        match error:
            case ModuleNotFoundError():
                return f"module {error.name}" if self.imports.has_lacking_module(error.name) else ""
            case ImportError() if kind is ImportError:
                return self._named(error.name, getattr(error, "name_from", None))
            case AttributeError() if type(error.obj) is ModuleType:
                return self._named(error.obj.__name__, error.name)
            case OSError() if error.errno in FILES:
                return "files, processes and sockets"
            case LookupError() if kind is LookupError and str(error).startswith(UNKNOWN_ENCODING):
                name = _normal(str(error).removeprefix(UNKNOWN_ENCODING))
                return f"encoding {name}" if name in self.encodings else ""
            case ValueError() if kind is ValueError and str(error).endswith(ISLICE):
                return "sizes of more than 32 bits"
        return MESSAGES.get(kind.__name__, {}).get(str(error), "")

    def _named(self, module: Any, name: Any) -> str:
        return f"{module}.{name}" if self.imports.has_lacking(module, name) else ""


def _origin(error: BaseException) -> tuple[str, str]:
    """Return the file of the code that raised the error, and the instruction."""
    entry: TracebackType | None = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None:
        return "", ""
    code = entry.tb_frame.f_code
    return code.co_filename, opcode.opname[code.co_code[entry.tb_lasti]]


def _is_known(encoding: str) -> bool:
    try:
        "".encode(encoding)
    except LookupError as error:
        return not str(error).startswith(UNKNOWN_ENCODING)  # else it is for bytes
    except Exception:
        return True
    return True


def _normal(encoding: str) -> str:
    return encoding.lower().replace("-", "_").replace(" ", "_")
