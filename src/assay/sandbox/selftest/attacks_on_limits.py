"""Define what an attack is, and those that exceed limits which no count of processes sees.

Each uses at most 2 GB and a few seconds where nothing stops it. A comment marks those that got
through while limits were counted from what processes show of themselves.
"""

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
    """A hostile program and the reasons with which it may end. Others are breaches.

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


# Children of 1.5 GB together; the tree's limit is a third of it. They say when they hold it, which
# takes a while on a busy machine.
HOLD = """
ready, told = os.pipe()
def hold(megabytes, seconds):
    x = bytearray(b'x') * (megabytes << 20)
    os.write(told, b'x')
    time.sleep(seconds)
for _ in range(4):
    if not os.fork():
        hold(380, 30)
        os._exit(0)
for _ in range(4): os.read(ready, 1)
time.sleep(4)
raise RuntimeError('was allowed to hold 1.5 GB')
"""
FILL = """
ALLOWED = 900 << 20
held, kept = 0, []
def fill(s):
    global held
    s.setblocking(False)
    piece = bytes(32768)
    try:
        while True: held += s.send(piece)
    except OSError: pass
"""

CLONE = """
def clone(flags):
    number = 56 if os.uname().machine == 'x86_64' else 220
    return libc.syscall(number, ctypes.c_ulong(flags), 0, 0, 0, 0)
"""

CPU = (
    # Got through: 12 s with a limit of 2, counted as next to none.
    Attack(
        "CPU by children that nobody waits for",
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for i in range(40):\n    if not os.fork():\n"
        "        while time.process_time() < 0.3: pass\n        os._exit(0)\n"
        "    time.sleep(0.15)\ntime.sleep(10)",  # for machines where others are busy too
        ("timeout",), cpu_s=2, wall_s=30,
    ),
    Attack(
        "CPU by orphans",
        "import os, time\nfor i in range(30):\n    if not os.fork():\n        if not os.fork():\n"
        "            os.setsid()\n            while time.process_time() < 0.3: pass\n"
        "        os._exit(0)\n    os.wait()\n    time.sleep(0.15)\ntime.sleep(10)",
        ("timeout",), cpu_s=2, wall_s=30,
    ),
    # Got through: a grandchild's time is its parent's, whom nobody waits for.
    Attack(
        "CPU by grandchildren of children that nobody waits for",
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for i in range(20):\n    if not os.fork():\n"
        "        signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n        for j in range(2):\n"
        "            if not os.fork():\n                while time.process_time() < 0.15: pass\n"
        "                os._exit(0)\n            os.wait()\n        os._exit(0)\n"
        "    time.sleep(0.2)\ntime.sleep(10)",
        ("timeout",), cpu_s=2, wall_s=30,
    ),
    Attack(
        "CPU by siblings, which the keeper must wait for",
        HELPERS + CLONE + "for i in range(30):\n    if clone(0x8000 | 17) == 0:\n"
        "        while time.process_time() < 0.3: pass\n        os._exit(0)\n"
        "    time.sleep(0.15)\ntime.sleep(10)",
        ("timeout",), cpu_s=2, wall_s=30,
    ),
)  # fmt: skip

MEMORY = (
    # Got through on machines that have such pages: no limit counts them.
    Attack(
        "memory: huge pages",
        HELPERS + "import mmap\nrefused(mmap.mmap, -1, 2 << 20, 0x22 | 0x40000)",
    ),
    # Got through without a cgroup: what cannot be read counted as nothing.
    Attack(
        "memory: dumpable switched off",
        HELPERS + "libc.prctl(4, 0, 0, 0, 0)\n" + HOLD, ("memory", "forbidden"), wall_s=15,
    ),
    Attack(
        "memory: dumpable switched off in each child",
        HELPERS + HOLD.replace("    x =", "    libc.prctl(4, 0, 0, 0, 0)\n    x ="),
        ("memory", "forbidden"), wall_s=15,
    ),
    # Got through without a cgroup: a program that cannot be read is not dumpable either.
    Attack(
        "memory: a program that cannot be read",
        "import os, shutil, sys, time\n"
        "python = next(p for p in ('/usr/bin/python3', sys.base_prefix + '/bin/python3') if "
        "os.path.exists(p))\nshutil.copyfile(os.path.realpath(python), 'p')\nos.chmod('p', 0o111)\n"
        f"script = 'import os, time' + {HOLD!r}\n"
        "os.execv('./p', ['p', '-S', '-I', '-c', script])",
        ("memory", "forbidden", "files", "exception"), wall_s=15,  # a guest has no such program
    ),
    # Got through without a cgroup: no process shows what waits in a socket.
    Attack(
        "memory: unix connections that nobody accepts",
        HELPERS + FILL + "for number in range(4):\n    server = socket.socket(socket.AF_UNIX)\n"
        "    server.bind('\\0x%d' % number)\n    server.listen(4096)\n    kept.append(server)\n"
        "    for _ in range(3000):\n        client = socket.socket(socket.AF_UNIX)\n"
        "        client.setblocking(False)\n"
        "        try: client.connect('\\0x%d' % number)\n        except OSError: break\n"
        "        fill(client)\n        client.close()\n        if held > ALLOWED: break\n"
        "if held > ALLOWED:\n    time.sleep(1)\n"
        "    raise RuntimeError(f'was allowed: {held >> 20} MB')",
        ("memory", "forbidden", "files", "passed"), wall_s=20,
    ),
    # Got through without a cgroup.
    Attack(
        "memory: full socket pairs in many processes",
        HELPERS + FILL + "for number in range(24):\n    if not os.fork():\n"
        "        for _ in range(110):\n            pair = socket.socketpair()\n"
        "            kept.append(pair)\n            fill(pair[0])\n            fill(pair[1])\n"
        "        time.sleep(6)\n        os._exit(held < 30 << 20)\n"
        "full = sum(os.wait()[1] == 0 for _ in range(24))\n"
        "if full > 20: raise RuntimeError(f'was allowed: {full * 30} MB or more')",
        ("memory", "forbidden", "files", "processes", "passed"), wall_s=25,
    ),
    Attack(
        "memory: sockets in transit through sockets",
        HELPERS + FILL + "import array\nways = [socket.socketpair() for _ in range(9)]\n"
        "for near, far in ways:\n    for _ in range(200):\n        a, b = socket.socketpair()\n"
        "        fill(a)\n        fill(b)\n"
        "        numbers = array.array('i', [a.fileno(), b.fileno()])\n"
        "        try: near.sendmsg([b'x'], [(1, 1, numbers)])\n        except OSError: break\n"
        "        finally: a.close(); b.close()\n"
        "if held > ALLOWED: raise RuntimeError(f'was allowed: {held >> 20} MB')",
        ("memory", "forbidden", "files", "passed"), wall_s=20,
    ),
)  # fmt: skip

NUMBERS = (
    Attack(
        "threads of many processes",
        "import os, threading, time\nfor _ in range(12):\n    if not os.fork():\n"
        "        try:\n            for _ in range(20):\n"
        "                threading.Thread(target=time.sleep, args=(3,)).start()\n"
        "        except RuntimeError: os._exit(1)\n        time.sleep(3)\n        os._exit(0)\n"
        "if all(os.wait()[1] == 0 for _ in range(12)):\n"
        "    raise RuntimeError('240 threads were allowed')",
        ("processes", "memory", "passed"), wall_s=15,
    ),
    Attack(
        "zombies", "import os\nfor _ in range(500):\n    if not os.fork(): os._exit(0)",
        ("processes",),
    ),
    Attack(
        "zombies of siblings",
        HELPERS + CLONE + "for _ in range(500):\n    found = clone(0x8000 | 17)\n"
        "    if found == 0: os._exit(0)\n    if found == -1: raise OSError(11, 'no more')",
        ("processes",),
    ),
    Attack(
        "daemons in their own Landlock domain",
        HELPERS + "import struct\nfor _ in range(9):\n    if not os.fork():\n        os.setsid()\n"
        "        for _ in range(16):\n"
        "            rules = libc.syscall(444, struct.pack('QQQ', 0xffff, 3, 3), 24, 0)\n"
        "            libc.syscall(446, rules, 0)\n        if os.fork(): os._exit(0)\n"
        "        libc.prctl(15, b'@MARK@', 0, 0, 0)\n        time.sleep(60)\ntime.sleep(0.3)",
    ),
    Attack(
        "daemons that ignore signals",
        HELPERS + "import signal\nfor _ in range(9):\n    if not os.fork():\n        os.setsid()\n"
        "        for n in range(1, 65):\n            try: signal.signal(n, signal.SIG_IGN)\n"
        "            except (OSError, ValueError): pass\n        if os.fork(): os._exit(0)\n"
        "        libc.prctl(15, b'@MARK@', 0, 0, 0)\n        time.sleep(60)\ntime.sleep(0.3)",
    ),
    Attack(
        "a process that forks and exits in turns",
        HELPERS + "if not os.fork():\n    os.setsid()\n    libc.prctl(15, b'@MARK@', 0, 0, 0)\n"
        "    while True:\n        if os.fork(): os._exit(0)\ntime.sleep(0.3)",
        ("passed", "processes", "exit"),  # the one that may fork no more says so too
    ),
    Attack(
        "a thousand listeners",
        HELPERS + "for _ in range(8):\n    if not os.fork():\n        kept = []\n"
        "        try:\n            for _ in range(125):\n"
        "                s = socket.socket(socket.AF_UNIX)\n"
        "                s.bind('')\n                s.listen()\n                kept.append(s)\n"
        "        except OSError: pass\n        time.sleep(0.5)\n        os._exit(0)\n"
        "time.sleep(0.3)",
    ),
    Attack(
        "disk fill by deleted files",
        "import os\nkept = []\nfor i in range(12):\n    kept.append(open('x', 'wb'))\n"
        "    os.unlink('x')\n    kept[-1].write(bytes(8 << 20))\n    kept[-1].flush()",
        ("files",), not_promised=("landlock", "podman"),
    ),
    Attack(
        "disk fill by reservation", "import os\nos.posix_fallocate(os.open('x', 66), 0, 1 << 30)",
        ("files",),
    ),
    # Got through: (0, 0) lets a handler that the kernel pipes a core to run as root on the host.
    Attack(
        "core dump",
        "import os, resource\nlimits = resource.getrlimit(resource.RLIMIT_CORE)\n"
        "if limits != (1, 1): raise RuntimeError(f'core limits {limits}')\n"
        "try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))\n"
        "except (ValueError, OSError): pass\nos.abort()",
        ("signal",),
    ),
)  # fmt: skip

ON_LIMITS = (*CPU, *MEMORY, *NUMBERS)
