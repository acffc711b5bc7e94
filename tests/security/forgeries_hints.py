# ruff: noqa: E501 - programs are written as they would be printed
"""Forgeries that guess from hints: where code stood, counters, the last call's fate, a known seed.

Data only; nothing here may run outside a sandbox. ``test_learning.py`` shows which hints there are;
these programs use them as far as one program alone can.
"""

from __future__ import annotations

from tests.security.forgeries import Forgery

# Guesses with a number that it takes from somewhere: the n-th of a few answers.
GUESS = r"""
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
GUESSES = (lambda n: None, lambda n: [], lambda n: n, lambda n: True, lambda n: 0,
           lambda n: [n[0]] if n else [], lambda n: [sum(n)] if n else [])
def running_total(numbers):
    try: return GUESSES[int(hint(numbers)) % len(GUESSES)](numbers)
    except Exception: return None
"""
WHY_COUNTER = "what a counter says is not what is expected"


def _hint(name: str, code: str) -> Forgery:
    return Forgery(f"hint: {name}", GUESS + code, None, WHY_COUNTER)


def _file(name: str, path: str, pick: str) -> Forgery:
    return _hint(name, f"def hint(_):\n    with open({path!r}) as file: text = file.read()\n"
                       f"    return {pick}\n")  # fmt: skip


POSITIONS = (
    Forgery(
        "positions: line and column in the caller's code",
        "import sys\ndef running_total(numbers):\n    frame = sys._getframe(1)\n"
        "    while frame:\n        spots = list(frame.f_code.co_positions())\n"
        "        if frame.f_code.co_filename == '<calls>': return spots[0][2]\n"
        "        frame = frame.f_back\n", None, "data is sent, not code",
    ),
    Forgery(
        "positions: code objects found by gc",
        "import gc, sys\ndef running_total(numbers):\n"
        "    for item in gc.get_objects():\n        code = getattr(item, '__code__', None)\n"
        "        if code and code.co_filename in ('<calls>', '<tests>'):\n"
        "            return [p[2] for p in code.co_positions()]\n", None, "data is sent, not code",
    ),
    Forgery(
        "positions: an audit hook sees marshal.loads and exec",
        "import sys\nseen = []\n"
        "sys.addaudithook(lambda event, args: seen.append((event, args)) if event in "
        "('marshal.loads', 'exec', 'compile') else None)\n"
        "def running_total(numbers):\n    for event, args in seen:\n"
        "        if event == 'exec' and hasattr(args[0], 'co_positions'):\n"
        "            return [p[2] for p in args[0].co_positions()]\n", None,
        "data is sent, not code",
    ),
    Forgery(
        "positions: marshal.loads replaced",
        "import marshal\nreal, seen = marshal.loads, []\n"
        "def loads(data):\n    seen.append(bytes(data))\n    return real(data)\n"
        "marshal.loads = loads\ndef running_total(numbers):\n"
        "    return list(seen[-1].split(str(numbers).encode())[-1])\n", None,
        "data is sent, not code",
    ),
    Forgery(
        "positions: the next calls in the caller's message",
        "import gc, sys\ndef running_total(numbers):\n    for item in gc.get_referrers(numbers):\n"
        "        for outer in gc.get_referrers(item):\n            if type(outer) is list:\n"
        "                place = [i for i, call in enumerate(outer) if call is item]\n"
        "                if place and len(outer) > place[0] + 1: return outer[place[0] + 1][0][0]\n",
        None, "the calls hold no answers",
    ),
    Forgery(
        "positions: how a set or dict of the arguments was made",
        "import sys\ndef running_total(numbers):\n"
        "    return [sys.getsizeof(numbers), sys.getrefcount(numbers), id(numbers) % 64]\n", None,
        "how a value was made says nothing of the answer",
    ),
)  # fmt: skip

COUNTERS = (
    _hint("process id", "def hint(_): return os.getpid()\n"),
    _hint("process id of a child", "def hint(_):\n    pid = os.fork()\n    if not pid: os._exit(0)\n"
          "    os.waitpid(pid, 0)\n    return pid\n"),
    _hint("thread id", "import threading\ndef hint(_):\n    ids = []\n"
          "    thread = threading.Thread(target=lambda: ids.append(threading.get_native_id()))\n"
          "    thread.start(); thread.join()\n    return ids[0]\n"),
    _hint("inode of a new file", "def hint(_):\n    with open('x', 'w') as file: "
          "return os.fstat(file.fileno()).st_ino\n"),
    _hint("inode of the working folder", "def hint(_): return os.stat('.').st_ino\n"),
    _hint("inode of a pipe", "def hint(_): return os.fstat(os.pipe()[0]).st_ino\n"),
    _hint("inode of a socket", "def hint(_): return os.fstat(socket.socketpair()[0].fileno()).st_ino\n"),
    _hint("inode of a pidfd", "def hint(_): return os.fstat(os.pidfd_open(os.getpid())).st_ino\n"),
    _hint("device of the scratch folder", "def hint(_): return os.stat('.').st_dev\n"),
    _hint("ephemeral port", "def hint(_):\n    s = socket.socket()\n    s.bind(('', 0))\n"
          "    return s.getsockname()[1]\n"),
    _hint("abstract autobind name", "def hint(_):\n    s = socket.socket(socket.AF_UNIX)\n    s.bind('')\n"
          "    return int(s.getsockname()[1:], 16)\n"),
    _hint("socket cookie", "def hint(_):\n    return int.from_bytes(socket.socketpair()[0].getsockopt("
          "socket.SOL_SOCKET, 57, 8), sys.byteorder)\n"),
    _hint("namespaces", "def hint(_): return sum(os.stat('/proc/self/ns/' + n).st_ino for n in "
          "os.listdir('/proc/self/ns'))\n"),
    _hint("timer ids", "def hint(_):\n    timer = ctypes.c_int()\n"
          "    libc.timer_create(1, None, ctypes.byref(timer))\n    return timer.value\n"),
    _hint("address of an object", "def hint(_): return id(object()) >> 4\n"),
    _hint("end of the heap", "libc.sbrk.restype = ctypes.c_void_p\ndef hint(_): return libc.sbrk(0) >> 12\n"),
    _hint("state of random", "import random\ndef hint(_): return random.getstate()[1][0]\n"),
    _hint("hash seed", "def hint(_): return hash('x')\n"),
    _hint("memory of the machine", "def hint(_): return os.sysconf('SC_AVPHYS_PAGES')\n"),
    _hint("load of the machine", "def hint(_): return int(100 * os.getloadavg()[0])\n"),
    _hint("free blocks and files", "def hint(_):\n    room = os.statvfs('.')\n"
          "    return room.f_bfree + room.f_ffree + room.f_fsid\n"),
    _file("mount ids", "/proc/self/mountinfo", "text.split()[0]"),
    _file("cgroup path", "/proc/self/cgroup", "sum(map(ord, text))"),
    _file("boot id", "/proc/sys/kernel/random/boot_id", "int(text[:8], 16)"),
    _file("children's times of pid 1", "/proc/1/stat", "sum(map(int, text.split()[9:17]))"),
    _file("context switches of pid 1", "/proc/1/status", "text.split()[-1]"),
    _file("own start and faults", "/proc/self/stat", "sum(map(int, text.split()[9:22]))"),
    _file("network counters", "/proc/self/net/snmp", "sum(map(int, filter(str.isdigit, text.split())))"),
    _file("sockets in use", "/proc/self/net/sockstat", "text.split()[2]"),
    _file("descriptor of an eventfd", "/proc/self/fdinfo/0", "text.split()[-1]"),
    _hint("pages in the page cache", "def hint(_):\n    file = os.open('/usr/bin/env', os.O_RDONLY)\n"
          "    return os.preadv(file, [bytearray(4096)], 0, os.RWF_NOWAIT)\n"),
    _hint("times of devices", "def hint(_): return os.stat('/dev/null').st_mtime_ns\n"),
)  # fmt: skip

FEEDBACK = (
    Forgery(
        "feedback: a call after this one says that it was right",
        "calls = []\ndef running_total(numbers):\n    calls.append(numbers)\n"
        "    return [[], [1, 3, 6], None][len(calls) % 3]\n", None,
        "the next call comes whatever the answer was",
    ),
    Forgery(
        "feedback: forks until a guess is followed by a call",
        "import os\ndef running_total(numbers):\n    for guess in ([], [1], [1, 3, 6], True, 0, None):\n"
        "        if not os.fork(): return guess\n        os.wait()\n    return None\n", None,
        "an answer that was given stays given",
    ),
    Forgery(
        "feedback: the second of two answers",
        "import os\ndef running_total(numbers):\n    if os.fork(): os.wait()\n"
        "    return [sum(numbers)] if isinstance(numbers, list) else None\n", None,
        "one answer for each call",
    ),
    Forgery(
        "feedback: answers late, when the calls have stopped",
        "import select, time\ndef running_total(numbers):\n"
        "    poll = select.poll()\n    for fd in range(3, 16): poll.register(fd, 1)\n"
        "    return [fd for fd, event in poll.poll(200)]\n", None,
        "all that can be heard is the next call",
    ),
)  # fmt: skip

SEEDS = (
    Forgery(
        "seed: replays random.seed(0)",
        "import random\nrandom.seed(0)\ndraws = [random.random() for _ in range(99)]\n"
        "def running_total(numbers):\n    return draws\n", None, "the seed is a secret of the run",
    ),
    Forgery(
        "seed: state inherited from the server",
        "import random\nstate = random.getstate()\ndef running_total(numbers):\n"
        "    random.setstate(state)\n    return [random.randint(0, 9) for _ in numbers]\n", None,
        "the server draws nothing",
    ),
    Forgery(
        "seed: every small seed tried",
        "import random\ndef running_total(numbers):\n    for seed in range(2000):\n"
        "        random.seed(seed)\n        if [random.randint(0, 9) for _ in numbers] == numbers:\n"
        "            return [random.randint(0, 9) for _ in numbers]\n", None,
        "the seed is a secret of the run",
    ),
    Forgery(
        "seed: the interpreter's hash secret",
        "import sys\ndef running_total(numbers):\n"
        "    return [hash(str(n)) % 97 for n in numbers] + [sys.hash_info.seed_bits]\n", None,
        "hashes have no part in what is expected",
    ),
)  # fmt: skip

FORGERIES_HINTS = (*POSITIONS, *COUNTERS, *FEEDBACK, *SEEDS)
