# ruff: noqa: E501 - programs are written as they would be printed
"""Forgeries that want to leave the score: by killing, starving or confusing those who judge.

Data only; nothing here may run outside a sandbox. A verdict ``invalid`` is what they are after: it
is taken out of the score.
"""

from __future__ import annotations

from tests.security.forgeries import WRONG, Forgery

WHY = "what a program does to itself is its own failure"
EVERYONE = "[1, os.getppid(), *range(2, 12), -1]"


def _leaves(name: str, code: str) -> Forgery:
    return Forgery(f"leave: {name}", code, None, WHY)


def _signal(name: str, numbers: str, pids: str = EVERYONE) -> Forgery:
    return _leaves(name, f"import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                         f"for number in {numbers}:\n    for pid in {pids}:\n"
                         f"        if pid == os.getpid(): continue\n"
                         f"        try: os.kill(pid, number)\n        except OSError: pass\n"
                         f"time.sleep(0.2)\n{WRONG}")  # fmt: skip


SIGNALS = (
    _signal("SIGINT to pid 1", "[2]", "[1]"),
    _signal("SIGINT to the parent", "[2]", "[os.getppid()]"),
    _signal("SIGINT to everyone", "[2] * 20"),
    _signal("SIGTERM, SIGHUP and SIGQUIT to everyone", "[15, 1, 3]"),
    _signal("SIGPROF, SIGALRM and SIGVTALRM to everyone", "[27, 14, 26] * 9"),
    _signal("SIGSTOP and SIGTSTP to everyone", "[20, 19]", "[1, os.getppid()]"),
    _signal("SIGCHLD and SIGPIPE to everyone", "[17, 13] * 9"),
    _signal("all signals to pid 1", "range(1, 65)", "[1]"),
    _signal("all signals to the parent", "range(1, 65)", "[os.getppid()]"),
    _leaves("SIGINT in every call",
            "import os\ndef running_total(numbers):\n    os.kill(os.getppid(), 2)\n    os.kill(1, 2)\n"),
    _leaves("SIGINT from a child that keeps on",
            "import os, signal\nsignal.signal(2, signal.SIG_IGN)\nif not os.fork():\n"
            "    os.setsid()\n    while True:\n        for pid in (1, os.getppid()):\n"
            "            try: os.kill(pid, 2)\n            except OSError: pass\n" + WRONG),
    _leaves("signals through a pidfd",
            "import os, signal, time\nfor pid in (1, os.getppid()):\n    try: "
            "signal.pidfd_send_signal(os.pidfd_open(pid), 2)\n    except OSError: pass\n"
            "time.sleep(0.2)\n" + WRONG),
    _leaves("a signal queued with data",
            "import ctypes, os\nlibc = ctypes.CDLL(None)\nfor n in (2, 34, 64):\n"
            "    libc.sigqueue(1, n, 0)\n    libc.sigqueue(os.getppid(), n, 0)\n" + WRONG),
    _leaves("signals of input and output",
            "import fcntl, os\nfor fd in range(64):\n    try:\n        fcntl.fcntl(fd, fcntl.F_SETOWN, "
            "os.getppid())\n        fcntl.fcntl(fd, 10, 2)\n"
            "        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC)\n    except OSError: pass\n" + WRONG),
    _leaves("the parent's death signal",
            "import ctypes, os\nctypes.CDLL(None).prctl(1, 9)\nos.kill(-1, 2)\n" + WRONG),
)  # fmt: skip

DEATHS = (
    _leaves("kills itself with SIGKILL", "import os\nos.kill(os.getpid(), 9)\n"),
    _leaves("kills itself in the call",
            "import os\ndef running_total(numbers):\n    os.kill(os.getpid(), 9)\n"),
    _leaves("dies by every signal in turn",
            "import os\ndef running_total(numbers):\n    for n in range(1, 65):\n"
            "        if n != 19: os.kill(os.getpid(), n)\n"),
    _leaves("SIGKILL beside an out-of-memory kill",
            "import os, time\nif not os.fork():\n    x = []\n    while True: x.append(bytearray(b'x') * "
            "(1 << 20))\ntime.sleep(0.5)\nos.kill(os.getpid(), 9)\n"),
    _leaves("stops itself", "import os\nos.kill(os.getpid(), 19)\n"),
    _leaves("stops all but one of its processes",
            "import os, time\nchildren = [os.fork() for _ in range(3)]\nos.kill(0, 19)\n" + WRONG),
    _leaves("leaves a zombie leader behind",
            "import ctypes, threading, time\n"
            "threading.Thread(target=time.sleep, args=(60,)).start()\n"
            "ctypes.CDLL(None).syscall(60, 0)\n"),
    _leaves("execs something that never answers",
            "import os\nos.execv('/bin/sleep', ['sleep', '60'])\n"),
    _leaves("execs while a thread answers",
            "import os, threading\ndef running_total(numbers):\n"
            "    threading.Thread(target=os.execv, args=('/bin/true', ['true'])).start()\n    return 1\n"),
    _leaves("vfork that never returns",
            "import ctypes\nctypes.CDLL(None).syscall(58)\nwhile True: pass\n"),
    _leaves("aborts in C", "import ctypes\nctypes.CDLL(None).abort()\n"),
    _leaves("overflows the C stack",
            "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __getattr__(self, n): "
            "return repr(getattr(self, n + 'x'))\ndef f(n): return [f(n + 1) for _ in range(2)]\n"
            "def running_total(numbers): return f(0)\n"),
)  # fmt: skip

DESCRIPTORS = (
    _leaves("closes every descriptor", "import os\nos.closerange(0, 4096)\n" + WRONG),
    _leaves("closes every descriptor in the call",
            "import os\ndef running_total(numbers):\n    os.closerange(0, 4096)\n    return []\n"),
    _leaves("closes its output", "import os, sys\nos.close(1)\nos.close(2)\nsys.stdout = None\n"
            "print('x')\n" + WRONG),
    _leaves("writes noise to every descriptor up to 1024",
            "import os\nfor fd in range(1024):\n    try: os.write(fd, os.urandom(4096))\n"
            "    except OSError: pass\n" + WRONG),
    _leaves("fills every pipe without a reader",
            "import os\nfor fd in range(1024):\n    try:\n        os.set_blocking(fd, False)\n"
            "        while True: os.write(fd, b'\\0' * 65536)\n    except OSError: pass\n" + WRONG),
    _leaves("reads every descriptor empty",
            "import os\nfor fd in range(1024):\n    try:\n        os.set_blocking(fd, False)\n"
            "        while os.read(fd, 65536): pass\n    except OSError: pass\n" + WRONG),
    _leaves("makes every descriptor not block",
            "import os\nfor fd in range(1024):\n    try: os.set_blocking(fd, False)\n"
            "    except OSError: pass\n" + WRONG),
    _leaves("shrinks the buffers of its pipes",
            "import fcntl, os\nfor fd in range(64):\n    try: fcntl.fcntl(fd, 1031, 4096)\n"
            "    except OSError: pass\nprint('x' * 10**6)\n" + WRONG),
    _leaves("holds the channel in a child after its end",
            "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(60)\nos._exit(0)\n"),
    _leaves("holds the channel in many children",
            "import os, signal, time\nfor _ in range(20):\n    if not os.fork():\n        os.setsid()\n"
            "        for n in range(1, 65):\n            try: signal.signal(n, signal.SIG_IGN)\n"
            "            except (OSError, ValueError): pass\n        time.sleep(60)\nos._exit(0)\n"),
    _leaves("passes its channel to itself until no socket is left",
            "import array, os, socket\nkept = []\ntry:\n    for _ in range(200):\n"
            "        a, b = socket.socketpair()\n        a.sendmsg([b'x'], [(1, 1, array.array('i', "
            "[a.fileno(), b.fileno(), 3, 4]))])\n        kept.append((a, b))\nexcept OSError: pass\n" + WRONG),
    _leaves("moves the channel to another number",
            "import os\nfor fd in range(3, 10):\n    try: os.dup2(fd, fd + 100); os.close(fd)\n"
            "    except OSError: pass\n" + WRONG),
)  # fmt: skip

STARVING = (
    _leaves("forks until none is left, then is called",
            "import os, time\nwhile True:\n    try:\n        if not os.fork(): time.sleep(60)\n"
            "    except OSError: break\n" + WRONG),
    _leaves("forks from every fork", "import os\nfor _ in range(20):\n    try: os.fork()\n"
            "    except OSError: pass\n" + WRONG),
    _leaves("threads until none is left",
            "import threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, "
            "args=(60,), daemon=True).start()\nexcept RuntimeError: pass\n" + WRONG),
    _leaves("busy children in plenty",
            "import os\nfor _ in range(30):\n    if not os.fork():\n        while True: pass\n" + WRONG),
    _leaves("busy children while it sleeps",
            "import os, time\nfor _ in range(12):\n    if not os.fork():\n        while True: pass\n"
            "time.sleep(60)\n"),
    _leaves("memory up to the limit and no further",
            "x = []\ntry:\n    while True: x.append(bytearray(b'x') * (1 << 20))\nexcept MemoryError: pass\n"
            + WRONG),
    _leaves("files up to the limit",
            "import os\ntry:\n    for i in range(9999): open(str(i), 'wb').write(bytes(1 << 16))\n"
            "except OSError: pass\n" + WRONG),
    _leaves("the working folder removed",
            "import os, shutil\nhere = os.getcwd()\nos.chdir('/')\ntry: os.rmdir(here)\n"
            "except OSError: pass\n" + WRONG),
    _leaves("sleeps through its limits", "import time\ntime.sleep(60)\n"),
    _leaves("a timer of the judge switched off",
            "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\n"
            "signal.signal(signal.SIGPROF, signal.SIG_IGN)\n"
            "def running_total(numbers):\n    while True: pass\n"),
    _leaves("output by many writers",
            "import os\nfor _ in range(8):\n    if not os.fork():\n        while True: "
            "os.write(1, b'x' * 65536)\n" + WRONG),
    _leaves("names that look like the judge's",
            "import ctypes\nctypes.CDLL(None).prctl(15, b'sandbox_error')\n"
            "print('sandbox_error: fork: no memory')\nraise MemoryError('sandbox_error')\n"),
)  # fmt: skip

FORGERIES_LEAVING = (*SIGNALS, *DEATHS, *DESCRIPTORS, *STARVING)
