"""A program that searches all of its memory and all of its files for marks of other jobs.

Data only; it runs in the sandbox. The prefix of all marks is built while it runs and no mark is
shorter than 24 letters, so that it does not find itself.
"""

from __future__ import annotations

import random
import string

PREFIX = "QXJZVKWQ"
MARK_LENGTH = 24


def mark(kind: str, randomness: random.Random) -> str:
    """Return a fresh mark of 24 letters that says in two of them where it was left."""
    letters = randomness.choices(string.ascii_uppercase, k=MARK_LENGTH - len(PREFIX) - 2)
    return PREFIX + kind + "".join(letters)


MEMORY = r"""
import ctypes, os, re, sys
prefix = bytes(b - 1 for b in b"@SHIFTED@")
patterns = [
    re.compile(b"".join(bytes([b]) + b"\0" * (width - 1) for b in prefix)
               + (b"(?:[A-Z]" + b"\0" * (width - 1) + b"){16}"))
    for width in (1, 2, 4)
]
marks = set()

def search(data):
    for pattern in patterns:
        marks.update(m.replace(b"\0", b"").decode() for m in pattern.findall(data))

def readable_parts():
    # Where /proc is there, the kernel lists them and reads them.
    with open("/proc/self/mem", "rb", 0) as memory, open("/proc/self/maps") as maps:
        for line in maps:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            if line.split()[1][0] != "r" or "[v" in line:
                continue
            try:
                memory.seek(start)
                yield memory.read(end - start)
            except (OSError, ValueError, OverflowError):
                pass

PIECE = 1 << 16
libc = ctypes.CDLL(None, use_errno=True)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
ends = os.pipe()

def piece(address):
    # The kernel writes what is mapped there into a pipe, and refuses what is not.
    size = libc.write(ends[1], ctypes.c_void_p(address), PIECE)
    return os.read(ends[0], PIECE) if size > 0 else b""

def parts_by_write():
    here = ctypes.create_string_buffer(64)
    seeds = {id(object()), id(sys.modules), id([]), ctypes.addressof(here), libc.malloc(99),
             libc.malloc(1 << 20), libc.sbrk(0) - 4096,
             ctypes.cast(libc.write, ctypes.c_void_p).value, id("x" * 999), id("x" * 99999)}
    seeds.update(map(id, [*sys.modules.values(), search, marks, patterns, bytes(1 << 19)]))
    done = set()
    for seed in sorted(seeds):
        for step in (PIECE, -PIECE):
            address, misses = seed // PIECE * PIECE, 0
            while misses < 512 and address not in done and address > 0:
                done.add(address)
                data = piece(address)
                while len(data) % PIECE and data:  # the rest after a short write
                    more = piece(address + len(data))
                    if not more:
                        break
                    data += more
                if not data:  # its first pages may be missing
                    for offset in range(4096, PIECE, 4096):
                        data = piece(address + offset)
                        if data:
                            break
                misses = 0 if data else misses + 1
                if data:
                    yield data
                address += step

def search_memory():
    try:
        open("/proc/self/maps").close()
        parts = readable_parts()
    except OSError:
        parts = parts_by_write()
    looked_at = 0
    for part in parts:
        looked_at += len(part)
        search(part)
    return looked_at
"""

FILES = r"""
import time
def search_file(path):
    try:
        with open(path, "rb", 0) as file:
            search(file.read(1 << 22) or b"")
    except (OSError, ValueError):
        pass

def search_files(*tops):
    recent = time.time() - 3 * 86400  # what lay there before cannot hold a mark
    for top in tops:
        for folder, folders, names in os.walk(top):
            if folder == "/":
                folders[:] = [n for n in folders if n not in ("proc", "sys", "dev")]
            for name in (*folders, *names):
                search(os.fsencode(name))
                path = folder + "/" + name
                try:
                    seen = os.lstat(path)
                    changed = max(seen.st_mtime, seen.st_ctime) > recent
                    if changed and seen.st_mode & 0o170000 == 0o100000:
                        search_file(path)
                except OSError:
                    pass

def search_proc():
    skipped = ("mem", "pagemap", "kcore", "kmsg", "clear_refs")
    for pid in ("self", "1", str(os.getppid()), *map(str, range(2, 40))):
        for folder in (f"/proc/{pid}", f"/proc/{pid}/net", f"/proc/{pid}/attr"):
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in names:
                path = f"{folder}/{name}"
                if name not in skipped and not os.path.isdir(path):
                    search_file(path)
    search(repr((sys.argv, dict(os.environ), sys.path, os.getcwd())).encode())
"""

REPORT = """
def f(*arguments):
    assert search_memory() > 1 << 20  # it does look
    search_proc()
    search_files(@TOPS@)
    if marks:
        kinds = sorted({m[8:10] for m in marks})
        raise LookupError(" ".join([*kinds, *sorted(marks)[:3]]))
    return "nothing"
"""


def scanner(*tops: str) -> str:
    """Return the program; its ``f()`` raises the kinds of marks and the first marks."""
    shifted = "".join(chr(ord(letter) + 1) for letter in PREFIX)
    report = REPORT.replace("@TOPS@", ", ".join(map(repr, tops)))
    return (MEMORY + FILES + report).replace("@SHIFTED@", shifted)
