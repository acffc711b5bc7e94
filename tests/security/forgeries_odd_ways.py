# ruff: noqa: E501 - programs are written as they would be printed
"""Forgeries by ways that the other files leave out: odd corners of the kernel and of Python.

Data only; nothing here may run outside a sandbox. ``MEMORY`` are meant to run after an honest sample
of the same task.
"""

from __future__ import annotations

from tests.security.forgeries import WRONG, Forgery
from tests.security.forgeries_answers import SPEAK
from tests.security.forgeries_memory import SEEK

CALLS = r"""
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == 'x86_64'
def call(x86_64, aarch64, *arguments): return libc.syscall(x86_64 if X86 else aarch64, *arguments)
def clone(flags): return call(56, 220, ctypes.c_ulong(flags), 0, 0, 0, 0)
"""


def _seeks(name: str, code: str) -> Forgery:
    return Forgery(
        f"odd memory: {name}", SEEK + code, None, "no page holds anything of another job"
    )


def _leaves(name: str, code: str) -> Forgery:
    why = "what a program does to itself is its own failure"
    return Forgery(f"odd leave: {name}", CALLS + code, None, why)


def _sends(name: str, code: str) -> Forgery:
    why = "an answer that comes too early, too often or not in its place counts against the program"
    return Forgery(f"odd channel: {name}", SPEAK + code, None, why)


def _answers(name: str, prelude: str, answer: str) -> Forgery:
    code = f"{prelude}def running_total(numbers):\n    return {answer}\n"
    return Forgery(f"odd answer: {name}", code, None, "values are compared as plain data")


MEMORY = (
    _seeks("files of /proc/self/map_files", "folder = '/proc/self/map_files'\n"
           "for name in os.listdir(folder):\n    try: take(open(f'{folder}/{name}', 'rb').read())\n    except OSError: pass\n"),
    _seeks("pages that come fresh from the kernel", "import mmap\nfor size in (1, 16, 64, 256):\n"
           "    for _ in range(256 // size):\n        with mmap.mmap(-1, size << 20) as fresh:\n            if fresh.find(NEEDLE) >= 0: take(fresh[:])\n"),
    _seeks("pages given back and taken again", "libc.sbrk.restype = ctypes.c_void_p\nend = libc.sbrk(0)\n"
           "for size in (1 << 12, 1 << 16, 1 << 20):\n    libc.sbrk(ctypes.c_long(size))\n    take(ctypes.string_at(end, size))\n"
           "    libc.sbrk(ctypes.c_long(-size))\n"),
    _seeks("holes of files and the ends of their last pages", "import mmap\nfd = os.open('hole', os.O_CREAT | os.O_RDWR)\n"
           "os.write(fd, b'x')\nwith mmap.mmap(fd, 1) as page: take(ctypes.string_at(ctypes.addressof(ctypes.c_char.from_buffer(page)), 4096))\n"),
    _seeks("what a full pipe or socket had before", "import socket\npair = socket.socketpair()\nfor near, far in ([s.fileno() for s in pair], os.pipe()[::-1]):\n"
           "    os.write(near, b'x')\n    take(os.read(far, 1 << 20))\n"),
    _seeks("the core of a child that crashes", "import resource\ntry: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))\nexcept (ValueError, OSError): pass\n"
           "if not os.fork(): os.abort()\nos.wait()\n"
           "for name in os.listdir('.'): take(open(name, 'rb').read())\n"),
    _seeks("the vDSO and what the kernel passes to a process", "libc.getauxval.restype = ctypes.c_ulong\n"
           "for kind in (3, 25, 31, 33):\n    where = libc.getauxval(ctypes.c_ulong(kind)) & ~4095\n    if where: take(ctypes.string_at(where, 4096))\n"),
    _seeks("session, user and process keyrings", "call = lambda *a: libc.syscall(250 if os.uname().machine == 'x86_64' else 219, *a)\n"
           "room = ctypes.create_string_buffer(1 << 16)\nfor ring in (-1, -2, -3, -4, -5):\n    if call(11, ctypes.c_long(ring), room, 1 << 16) > 0: take(room.raw)\n"),
    _seeks("shared memory and message queues by number", "machine = os.uname().machine == 'x86_64'\n"
           "libc.shmat.restype = ctypes.c_void_p\nfor number in range(64):\n    where = libc.shmat(number, None, 0o10000)\n"
           "    if where and where < 1 << 62: take(ctypes.string_at(where, 4096))\n    room = ctypes.create_string_buffer(1 << 16)\n"
           "    if libc.msgrcv(number, room, 1 << 15, 0, 0o4000) > 0: take(room.raw)\n"),
    _seeks("shared memory by name", "for folder in ('/dev/shm', '/dev/mqueue', '/dev/hugepages', '/run/shm'):\n"
           "    try: names = os.listdir(folder)\n    except OSError: continue\n    for name in names:\n"
           "        try: take(open(f'{folder}/{name}', 'rb').read())\n        except OSError: pass\n"),
    _seeks("tracemalloc and faulthandler", "import faulthandler, io, tracemalloc\ntracemalloc.start(25)\n"
           "with open('frames', 'w+b') as file:\n    faulthandler.dump_traceback(file, all_threads=True)\n    file.seek(0)\n    take(file.read())\n"
           "for trace in tracemalloc.take_snapshot().traces: take(repr(trace).encode())\n"),
    _seeks("an interpreter inside the interpreter", "import _xxsubinterpreters as inner\nends = os.pipe()\nnumber = inner.create()\n"
           "inner.run_string(number, f'import gc, os\\nos.write({ends[1]}, repr([o for o in gc.get_objects() if isinstance(o, dict)]).encode()[:60000])')\n"
           "take(os.read(ends[0], 1 << 16))\n"),
    _seeks("frames of all threads", "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
           "for frame in sys._current_frames().values():\n    while frame:\n        take(repr((frame.f_locals, frame.f_globals, frame.f_code.co_consts)).encode())\n        frame = frame.f_back\n"),
    _seeks("every object that a pointer leads to", "import _ctypes\nseen, todo = set(), [sys.modules, gc.get_objects(), type]\n"
           "while todo and len(seen) < 200000:\n    item = todo.pop()\n    if id(item) in seen: continue\n    seen.add(id(item))\n"
           "    if isinstance(item, (str, bytes)): take(item.encode('utf-8', 'replace') if isinstance(item, str) else item)\n"
           "    else: todo += gc.get_referents(item)\n"),
)  # fmt: skip

LEAVING = (
    _leaves("siblings in place of children", "for _ in range(50):\n    if clone(0x8000 | 17) == 0: os._exit(0)\n" + WRONG),
    _leaves("siblings that stay", "for _ in range(9):\n    if clone(0x8000 | 17) == 0: time.sleep(60)\n" + WRONG),
    _leaves("a sibling answers, the program ends", "if clone(0x8000 | 17): os._exit(0)\n" + WRONG),
    _leaves("children whose end is another signal", "for number in (0, 2, 9, 15, 19, 64):\n    if clone(number) == 0: os._exit(0)\n" + WRONG),
    _leaves("a process that shares memory and goes on", "import mmap\nstack = mmap.mmap(-1, 1 << 16)\n"
            "top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + (1 << 16)\n"
            "libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), ctypes.c_void_p(top), 0x100 | 0x400 | 17, None)\n" + WRONG),
    _leaves("a Landlock domain of its own", "if not os.fork():\n    os.setsid()\n    for _ in range(16):\n"
            "        rules = call(444, 444, struct.pack('QQQ', 0xffff, 3, 3), 24, 0)\n        call(446, 446, rules, 0)\n    time.sleep(60)\n" + WRONG),
    _leaves("strict seccomp", "libc.prctl(22, 1, 0, 0, 0)\n" + WRONG),
    _leaves("a filter under which nothing can end", "exit_group = 231 if X86 else 94\n"
            "code = struct.pack('HBBI' * 4, 32, 0, 0, 0, 21, 0, 1, exit_group, 6, 0, 0, 0x50001, 6, 0, 0, 0x7fff0000)\nroom = ctypes.create_string_buffer(code)\n"
            "whole = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(room)))\n"
            "libc.prctl(22, 2, whole, 0, 0)\ndef running_total(numbers):\n    os._exit(0)\n"),
    _leaves("limits of its own at nothing", "import resource\nfor kind in range(16):\n    try: resource.setrlimit(kind, (0, 0))\n    except (ValueError, OSError): pass\n" + WRONG),
    _leaves("naps for ever", "def running_total(numbers):\n    while True: time.sleep(0.00002)\n"),
    _leaves("gives its turn away for ever", "def running_total(numbers):\n    while True: os.sched_yield()\n"),
    _leaves("mappings until the kernel refuses", "import mmap\nkept = mmap.mmap(-1, 400 << 20)\nwhere = ctypes.addressof(ctypes.c_char.from_buffer(kept))\n"
            "for page in range(0, 400 << 8, 2): libc.mprotect(ctypes.c_void_p(where + page * 4096), 4096, 1)\nfor _ in range(9):\n    if not os.fork(): time.sleep(60)\n" + WRONG),
    _leaves("locks on files that all programs see", "import fcntl, sys\nfor path in ('/usr/bin/env', os.__file__, sys.executable, '/dev/null'):\n"
            "    try: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError: pass\n" + WRONG),
)  # fmt: skip

SENDING = (
    _sends("answers of the right form before the calls", "say([[None]] * 8)\nsay([[[1, 3, 6]]])\n" + WRONG),
    _sends("every answer in one message, then silence", "def running_total(numbers):\n    say([[a] for a in ANSWERS] * 2)\n    time.sleep(9)\n"),
    _sends("signals written by the kernel", "import signal\nfor fd in CHANNELS:\n    os.set_blocking(fd, False)\n    signal.set_wakeup_fd(fd, warn_on_full_buffer=False)\n"
           "signal.signal(signal.SIGALRM, lambda *_: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n" + WRONG),
    _sends("traces written by the interpreter", "import faulthandler\nfor fd in CHANNELS: faulthandler.dump_traceback_later(0.001, repeat=True, file=fd)\n"
           "def running_total(numbers):\n    time.sleep(0.1)\n"),
    _sends("never reads a call", "for fd in CHANNELS: socket.socket(fileno=os.dup(fd)).setsockopt(1, 8, 1)\ntime.sleep(20)\n" + WRONG),
    _sends("many of the largest integers", "say([[{'int': hex((1 << 524287) - i)} for i in range(9)]] * 8)\n" + WRONG),
    _sends("sets that no set can hold", "say([[{'set': [[], {'dict': []}, {'set': [{'list': []}]}]}]] * 8)\nsay([[{'dict': [[{'set': []}, 1]]}]])\n" + WRONG),
    _sends("containers of all kinds in each other", "value = 1\nfor i in range(180): value = {['tuple', 'deque', 'list', 'values', 'iterator'][i % 5]: [value]}\nsay([[value]] * 8)\n" + WRONG),
)  # fmt: skip

ANSWERING = (
    _answers("digits without a limit", "import sys\nsys.set_int_max_str_digits(0)\n", "int('9' * 200_000)"),
    _answers("a context that rounds every number to nothing", "import decimal\ndecimal.getcontext().prec = 1\n", "[decimal.Decimal(1) / 3 for _ in numbers]"),
    _answers("an iterator that reads the next call", "import os\n", "(os.read(4, 99) for _ in range(9))"),
)  # fmt: skip

FORGERIES_ODD_WAYS = (*MEMORY, *LEAVING, *SENDING, *ANSWERING)
