"""Define what hostile programs try, and the outcomes that a sandbox must have.

The same battery is ``assay sandbox selftest`` and the conformance suite of every sandbox kind.
"""

from __future__ import annotations

from dataclasses import replace

from assay.data.test_code import CLOSE
from assay.sandbox.selftest.attacks_on_limits import HELPERS, ON_LIMITS, Attack

TIME = (
    Attack("infinite loop", "while True: pass", ("timeout",), cpu_s=1),
    Attack("sleep", "import time; time.sleep(60)", ("timeout",), wall_s=1),
    Attack(
        "all signals ignored",
        "import signal, time\nfor s in range(1, 65):\n"
        "    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "while True: pass",
        ("timeout",),
        cpu_s=1,
    ),
    Attack("hang in C: regex", "import re; re.match('(a+)+b', 'a' * 50)", ("timeout",), cpu_s=1),
    Attack("hang in C: big integer", "10 ** 10 ** 9", ("timeout", "memory"), cpu_s=1),
    Attack(
        "CPU through many children",
        "import os\nfor i in range(8):\n    if not os.fork():\n        while True: pass\n"
        "while True: pass",
        ("timeout",),
        cpu_s=1,
    ),
    Attack("alarm reset", "import signal\nwhile True: signal.alarm(0)", ("timeout",), cpu_s=1),
)

MEMORY = (
    Attack("memory: one block", "x = bytearray(2 << 30)", ("memory",)),
    Attack("memory: many blocks", "x = []\nwhile True: x.append(bytearray(1 << 20))", ("memory",)),
    Attack(
        "memory: many children",
        "import os, time\nfor i in range(12):\n    if not os.fork():\n"
        "        x = bytearray(b'x') * (100 << 20); time.sleep(20)\ntime.sleep(20)",
        ("memory",),
        wall_s=15,
    ),
    Attack(
        "memory: shared mapping",
        "import mmap, time\nm = mmap.mmap(-1, 400 << 20)\nn = mmap.mmap(-1, 400 << 20)\n"
        "for o in range(0, 400 << 20, 4096): m[o] = 1; n[o] = 1\ntime.sleep(5)",
        ("memory", "exception"),
        wall_s=15,
    ),
    Attack(
        "memory: memfd",
        "import os\nfds = [os.memfd_create('x') for _ in range(50)]\n"
        "for fd in fds: os.write(fd, bytes(60 << 20))",
        ("memory", "forbidden", "files"),
    ),
)

NUMBERS = (
    Attack(
        "fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        ("timeout", "processes", "memory"), cpu_s=2, wall_s=3,
    ),
    Attack(
        "thread bomb",
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(20,)).start()",
        ("processes", "memory", "timeout"), wall_s=5,
    ),
    Attack(
        "daemon that leaves session and parent",
        HELPERS + "if not os.fork():\n    os.setsid()\n    if not os.fork():\n"
        "        libc.prctl(15, b'@MARK@', 0, 0, 0)\n        time.sleep(60)\n    os._exit(0)\n"
        "time.sleep(0.3)",
    ),
    Attack("output flood", "for i in range(200): print('x' * 10**6)"),
    Attack(
        "disk fill", "for i in range(99): open(str(i), 'wb').write(bytes(8 << 20))", ("files",),
        not_promised=("landlock",),
    ),
    Attack("one large file", "open('x', 'wb').write(bytes(65 << 20))", ("files",)),
    Attack(
        "inode fill", "for i in range(20000): open(str(i), 'w').close()", ("files",),
        not_promised=("landlock", "podman"),
    ),
    Attack(
        "deep folders",
        "import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')", ("passed", "files"),
    ),
    Attack("scratch folder damaged", "import os\nos.chmod('.', 0)", ("passed", "forbidden")),
    Attack("unreadable folder left", "import os\nos.mkdir('d', 0)\nopen('f', 'w').close()"),
)  # fmt: skip

FILES = (
    Attack("read a host file", HELPERS + "refused(open, '@SECRET@')"),
    Attack("write a host file", HELPERS + "refused(open, '@SECRET@', 'r+')"),
    Attack("truncate a host file", HELPERS + "refused(os.truncate, '@SECRET@', 0)"),
    Attack("delete a host file", HELPERS + "refused(os.unlink, '@SECRET@')"),
    Attack("create a host file", HELPERS + "refused(open, '@FOLDER@/new', 'w')"),
    Attack("link to a host file", HELPERS + "refused(os.link, '@SECRET@', 'linked')"),
    Attack(
        "through a symbolic link",
        HELPERS + "os.symlink('@SECRET@', 'link')\n"
        "refused(open, 'link')\nrefused(open, 'link', 'w')",
    ),
    Attack("chmod of a host file", HELPERS + "refused(os.chmod, '@SECRET@', 0o777)"),
    Attack("utime of a host file", HELPERS + "refused(os.utime, '@SECRET@', (1, 1))"),
    Attack("xattr of a host file", HELPERS + "refused(os.setxattr, '@SECRET@', 'user.x', b'x')"),
    Attack("list a host folder", HELPERS + "refused(os.listdir, '@FOLDER@')"),
    Attack(
        "watch a host folder (inotify)",
        HELPERS + "watch = libc.inotify_init()\nfor path in (b'@FOLDER@', b'@SECRET@'):\n"
        "    if libc.inotify_add_watch(watch, path, 0xfff) != -1:\n"
        "        raise RuntimeError('was allowed')",
    ),
    Attack(
        "see a host file (stat)", HELPERS + "refused(os.stat, '@SECRET@')",
        not_promised=("landlock",),
    ),
    Attack("write to the system", HELPERS + "refused(open, '/usr/assay-was-here', 'w')"),
    Attack("host environment", "import os\nassert 'ASSAY_CANARY' not in os.environ"),
    Attack(
        "host environment through /proc",
        HELPERS + "refused(open, '/proc/1/environ')\n"
        "refused(open, f'/proc/{JUDGE}/environ')",
    ),
    Attack("the judge's memory", HELPERS + "refused(open, f'/proc/{JUDGE}/mem', 'rb')"),
    Attack(
        "the judge's descriptors", HELPERS + "refused(os.listdir, f'/proc/{JUDGE}/fd')"
    ),
    Attack(
        "inherited descriptors",
        "import os\nfor fd in range(4, 8192):\n    try: os.fstat(fd)\n"
        "    except OSError: continue\n"
        "    raise RuntimeError(f'descriptor {fd} is open')",
    ),
)  # fmt: skip

NETWORK = (
    Attack("TCP", HELPERS + "refused(socket.create_connection, @TCP@, 2)"),
    Attack(
        "UDP",
        HELPERS + "def send():\n    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "    s.sendto(b'x', @UDP@)\nrefused(send)",
    ),
    Attack(
        "abstract unix socket",
        HELPERS
        + "def send():\n    s = socket.socket(socket.AF_UNIX)\n    s.connect('\\0@ABSTRACT@')\n"
        "refused(send)",
    ),
    Attack(
        "raw, packet, netlink and vsock sockets",
        HELPERS + "refused(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)\n"
        "for family in (16, 17, 40, 38): refused(socket.socket, family, socket.SOCK_RAW, 0)\n"
        "refused(socket.socket, 40, socket.SOCK_STREAM, 0)",
    ),
)

JUDGE = (
    Attack(
        "kill everything",
        HELPERS + "try: os.kill(-1, 9)\nexcept OSError: pass\nos.kill(JUDGE, 9)",
        ("passed", "exception", "forbidden", "signal"),
    ),
    Attack("stop the judge", HELPERS + "try: os.kill(JUDGE, 19)\nexcept OSError: pass"),
    Attack(
        "interrupt the judge",
        HELPERS + "for number in (*range(1, 9), *range(10, 19), *range(20, 65)):\n"
        "    for pid in (1, JUDGE):\n        try: os.kill(pid, number)\n"
        "        except OSError: pass\ntime.sleep(0.2)",
        ("passed", "signal", "exception"),
    ),
    Attack("ptrace the judge", HELPERS + "refused_call(101, 117, 16, JUDGE, 0, 0)"),
    Attack(
        "limits of the judge",
        HELPERS + "import resource\n"
        "refused(resource.prlimit, JUDGE, resource.RLIMIT_NOFILE, (1, 1))",
    ),
    Attack(
        "priority of the judge", HELPERS + "refused(os.setpriority, os.PRIO_PROCESS, JUDGE, 19)"
    ),
    Attack("CPUs of the judge", HELPERS + "refused(os.sched_setaffinity, JUDGE, {0})"),
)

KERNEL = (
    Attack("new user namespace", HELPERS + "refused_call(272, 97, 0x10000000)"),
    Attack(
        "new namespaces by clone", HELPERS + "refused_call(56, 220, 0x10000000 | 17, 0, 0, 0, 0)"
    ),
    Attack("mount", HELPERS + "refused_call(165, 40, b'none', b'/tmp', b'tmpfs', 0, None)"),
    Attack("chroot", HELPERS + "refused(os.chroot, '/')"),
    Attack(
        "become root",
        HELPERS + "refused(os.setuid, 0) if os.getuid() else refused(os.setgroups, [0])",
    ),
    Attack(
        "bpf, io_uring, userfaultfd, keyctl, perf",
        HELPERS + "for numbers in ((321, 280), (425, 425), (323, 282), (250, 219), (298, 241)):\n"
        "    refused_call(*numbers, 0, 0, 0, 0, 0)",
    ),
    Attack(
        "32-bit system call",
        "import ctypes, mmap, os\nif os.uname().machine != 'x86_64': os.kill(os.getpid(), 31)\n"
        "m = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()",
        ("signal", "forbidden"),
    ),
    Attack("SysV shared memory", HELPERS + "refused_call(29, 194, 77, 4096, 0o1666)"),
    Attack("device nodes", HELPERS + "refused(os.mknod, 'dev', 0o20666, os.makedev(1, 1))"),
)

VERDICTS = (
    Attack("exit code 0", "import os; os._exit(0)", ("exit",), tests="assert False"),
    Attack("sys.exit(0)", "import sys; sys.exit(0)", ("exit",), tests="assert False"),
    Attack(
        "verdict on stdout", "print('{\"status\": \"pass\"}', flush=True)\nimport os; os._exit(0)",
        ("exit",), tests="assert False",
    ),
    Attack(
        "verdict on every descriptor",
        "import os\nfor fd in range(64):\n    try: os.write(fd, b'{\"status\": \"pass\"}')\n"
        "    except OSError: pass\nos._exit(0)",
        ("exit",), tests="assert False",
    ),
    Attack(
        "error that cannot be described",
        "class Mute(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Mute",
        ("exception",),
    ),
    Attack(
        "error that breaks its own report",
        "import json, sys\nsys.setrecursionlimit(50)\n"
        "class Deep(Exception):\n    def __str__(self): return self.__str__()\n"
        "json.dumps = None\nraise Deep", ("exception", "exit"),
    ),
    Attack("a signal is reported as such", "import os; os.kill(os.getpid(), 11)", ("signal",)),
    Attack(
        "object that equals everything",
        "class Liar:\n    def __eq__(self, other): return True\ndef f(): return Liar()",
        ("wrong-answer",), tests="assert f() == 41", not_promised=("shared",),
    ),
    Attack(
        "frame walking",
        "import os, sys\n"
        "def f():\n    frame = sys._getframe()\n    while frame:\n"
        "        token = frame.f_locals.get('token')\n"
        "        if isinstance(token, str) and len(token) == 32:\n"
        "            words = [token, 'pass', 'passed', '', '']\n"
        "            os.write(3, chr(0).join(words).encode()); os._exit(0)\n"
        "        frame = frame.f_back\n",
        ("wrong-answer",), tests="assert f() == 41", not_promised=("shared",),
    ),
)  # fmt: skip

# What shared tests do not promise, separated ones do.
SEPARATED = (
    *(
        replace(attack, name=f"{attack.name}, tests separated", integrity="separated")
        for attack in VERDICTS
        if "shared" in attack.not_promised
    ),
    Attack(
        "exceptions that end a loop of the tests",
        "def f(x): raise StopIteration", ("exception",),
        tests="for value in map(f, [1, 2]): assert value == 41", integrity="separated",
    ),
    Attack(
        "exceptions that end the tests",
        "def f(x): raise KeyboardInterrupt if x else SystemExit", ("exception", "exit"),
        tests="try: f(0), f(1)\nexcept RuntimeError: pass", integrity="separated",
    ),
    Attack(
        "function with methods of its own",
        "def f():\n    def liar(): pass\n    liar.count = lambda: 41\n    return liar",
        ("exception",), tests="assert f().count() == 41", integrity="separated",
    ),
    Attack(
        "number for an infinity", "def f(): return 1.0", ("wrong-answer",),
        tests=f"{CLOSE}assert are_close(float('inf'), f(), 1.0)", integrity="separated",
    ),
    # Got through: 120,000 integers with one hash, which take minutes in one step of C. They have
    # different hashes in a Python of 32 bits, such as that of wasm. The harness does not see the
    # CPU time of tests in a container, so there they end by wall time, with their worker.
    Attack(
        "integers that collide in a set of the tests",
        "def f(): return [n * (2**61 - 1) for n in range(60_000)]",
        ("timeout", "wrong-answer", "broke-worker"),
        tests="many = [*f(), *(n + 60_000 * (2**61 - 1) for n in f())]\nassert set(many) == {1}",
        integrity="separated",
    ),
)  # fmt: skip

LEAVE_BEHIND = Attack("leftovers, part one", "open('left', 'w').write('x')")
LOOK_FOR_IT = Attack("leftovers of the previous program", "import os\nassert os.listdir('.') == []")

BATTERY = (
    *TIME, *MEMORY, *NUMBERS, *ON_LIMITS, *FILES, *NETWORK, *JUDGE, *KERNEL, *VERDICTS, *SEPARATED,
    LEAVE_BEHIND, LOOK_FOR_IT,
)  # fmt: skip
