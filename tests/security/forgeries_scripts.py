# ruff: noqa: E501 - programs are written as they would be printed
"""Programs that read standard input and do not solve their problem, but try to be judged right.

Data only; nothing here may run outside a sandbox. The problem is to add two numbers. Its statement
shows EXAMPLES; HIDDEN are the cases that no program knows.
"""

from __future__ import annotations

from dataclasses import dataclass

EXAMPLES = [("1 2\n", "3\n"), ("4 5\n", "9\n")]
HIDDEN = [("71 2048\n", "2119\n"), ("-90 12345\n", "12255\n"), ("40000 33333\n", "73333\n")]
ADD = "a, b = map(int, input().split())\nprint(a + b)\n"


@dataclass(frozen=True, slots=True)
class ScriptForgery:
    """A dishonest program, and why it cannot pass."""

    name: str
    code: str
    why: str


ABSENT = "what is expected is in another process"
COMPARED = "another process compares what was printed"
SHOWS_ALL = r"""
import os, sys
def show(text):
    text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    sys.stdout.write(text[:100000])
"""


def _looks(name: str, code: str) -> ScriptForgery:
    return ScriptForgery(f"looks: {name}", SHOWS_ALL + code, ABSENT)


def _prints(name: str, code: str) -> ScriptForgery:
    return ScriptForgery(f"prints: {name}", code, COMPARED)


EXAMPLES_ONLY = tuple(
    ScriptForgery(name, code, "hidden cases are not in the statement")
    for name, code in (
        ("examples: looked up", f"print(dict({EXAMPLES!r}).get(input() + '\\n', ''))"),
        (
            "examples: the last one for all others",
            f"print(dict({EXAMPLES!r}).get(input() + '\\n', '9'))",
        ),
        ("examples: echoed whole", f"for pair in {EXAMPLES!r}: print(*pair, sep='')"),
        (
            "examples: right until they end",
            f"line = input()\nif line + '\\n' in dict({EXAMPLES!r}):\n    a, b = map(int, line.split()); print(a + b)",
        ),
        (
            "examples: loops for the rest",
            f"line = input() + '\\n'\nknown = dict({EXAMPLES!r})\nwhile line not in known: pass\nprint(known[line])",
        ),
    )
)
LEAVING = tuple(
    ScriptForgery(f"leaves: {name}", code, "neither an exit code nor silence is a pass")
    for name, code in (
        ("nothing at all", ""),
        ("sys.exit(0)", "import sys; sys.exit(0)"),
        ("os._exit(0)", "import os; os._exit(0)"),
        ("closes its output", "import os; os.close(1); os.close(2)"),
        ("exec of true", "import os; os.execv('/bin/true', ['true'])"),
        ("exec of cat", "import os; os.execv('/bin/cat', ['cat'])"),
        ("aborts", "import os; os.abort()"),
        ("stops itself", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"),
        ("kills its parent", "import os; os.kill(os.getppid(), 9)"),
        ("kills the first process", "import os; os.kill(1, 9)"),
        ("kills everything", "import os; os.kill(-1, 9)"),
        ("a child goes on", "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(1)\nprint('0')"),
        ("an error whose text never ends", "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E"),
        ("an exit whose code lies", "class C(int):\n    def __eq__(self, other): return True\n    __hash__ = None\nraise SystemExit(C())"),
        ("forks for ever", "import os\nwhile True: os.fork()"),
        ("raises in a hook at the end", "import atexit, os\natexit.register(lambda: os._exit(0))"),
    )
)  # fmt: skip
LOOKING = (
    _looks("/proc of all processes", "for top in ('/proc', '/proc/self', '/proc/1', '/proc/2'):\n    for name in ('environ', 'cmdline', 'maps', 'fd/0', 'fd/3', 'fd/4'):\n        try: show(open(f'{top}/{name}', 'rb').read(5000))\n        except OSError: pass"),
    _looks("memory of its parent", "import re\nfor pid in (1, os.getppid(), os.getpid() - 1):\n    try:\n        with open(f'/proc/{pid}/mem', 'rb') as memory: show(memory.read(4096))\n    except OSError: pass"),
    _looks("files in writable folders", "for top in ('.', '/tmp', '/dev/shm', '/scratch', '/var', '/home', '/root', '/work'):\n    for folder, _, names in os.walk(top):\n        for name in names:\n            try: show(open(os.path.join(folder, name), 'rb').read(5000))\n            except OSError: pass"),
    _looks("all its descriptors", "for number in range(256):\n    try:\n        os.set_blocking(number, False); show(os.pread(number, 5000, 0))\n    except OSError: pass\n    try: show(os.read(number, 5000))\n    except OSError: pass"),
    _looks("behind the end of its input", "size = os.fstat(0).st_size\nshow(os.pread(0, 1 << 20, size))\nimport mmap\nshow(mmap.mmap(0, size, prot=mmap.PROT_READ)[:])"),
    _looks("frames and their locals", "frame = sys._getframe()\nwhile frame:\n    show(repr(frame.f_locals)[:5000]); frame = frame.f_back"),
    _looks("objects of the collector", "import gc\nfor item in gc.get_objects():\n    if isinstance(item, (list, tuple, dict)) and 0 < len(item) < 50:\n        text = repr(item)\n        if 'expected' in text or 'cases' in text: show(text[:500])"),
    _looks("modules of the judge", "for name, module in list(sys.modules.items()):\n    if name.startswith('inside'):\n        for key, value in vars(module).items(): show(f'{key}={str(value)[:100]}\\n')"),
    _looks("memory near its own objects", "import ctypes\nstart = id(object()) & ~0xfff\nshow(ctypes.string_at(start, 4096))"),
    _looks("what its own sockets say", "import socket\nfor number in range(3, 20):\n    try:\n        s = socket.socket(fileno=number); s.setblocking(False); show(s.recv(4096, socket.MSG_PEEK))\n    except OSError: pass"),
    _looks("what an earlier case has left", "line = input()\ntry: show(open('left').read())\nexcept OSError: pass\nopen('left', 'w').write(line)\nopen('/tmp/left', 'w').write(line)"),
)  # fmt: skip
TELLING = (
    ScriptForgery("tells: a pass, on every descriptor", "import os\nfor number in range(1, 20):\n    for text in (b'pass\\0passed\\0\\0', b'[\"pass\",\"passed\"]', b'h+pass'):\n        try: os.write(number, text)\n        except OSError: pass", "a report can only make a failure"),
    ScriptForgery("tells: by the judge's own function", "import sys\nsys.modules['inside.serving.script'].tell('pass', 'passed', '', '')", "a report can only make a failure"),
    ScriptForgery("tells: that it could not begin", "import os\nos.write(3, b'OSError: no memory')\nos._exit(0)", "it has begun, so it cannot leave the score"),
    ScriptForgery("tells: other code for the next case", "import marshal, os, struct\ncode = marshal.dumps(compile('print(0)', 'x', 'exec'))\nos.write(3, b'c' + struct.pack('>I', len(code)) + code)", "the code was sent before it ran"),
    ScriptForgery("tells: a flood to the keeper", "import os\nos.set_blocking(3, False)\nwhile True:\n    try: os.write(3, b'x' * 65536)\n    except BlockingIOError: break\nprint(0)", "what is too long is dropped"),
    ScriptForgery("tells: the judge's functions replaced", "import sys, os\nfor name, module in list(sys.modules.items()):\n    if name.startswith('inside'):\n        for key in list(vars(module)):\n            if callable(getattr(module, key)): setattr(module, key, lambda *a, **k: True)", "the judge is another process"),
)  # fmt: skip
PRINTING = (
    _prints("its input", "print(input())"),
    _prints("every small number in a line", "print(*range(100000))"),
    _prints("every number on a line of its own", "for n in range(80000): print(n)"),
    _prints("the answer and its overwriting", "import sys\nsys.stdout.write('2119\\r12255\\r73333')"),
    _prints("backspaces", "print('0\\b2119\\b\\b\\b\\b12255')"),
    _prints("not a number", "print('nan')"),
    _prints("a number that signals", "print('sNaN')"),
    _prints("infinity", "print('inf')"),
    _prints("a number with a vast exponent", "print('1e999999999999999999')"),
    _prints("a number of a million digits", "print('9' * 1000000)"),
    _prints("a million short words", "print('1 ' * 500000)"),
    _prints("bytes that are not text", "import os; os.write(1, bytes(range(256)))"),
    _prints("zero bytes", "print('\\0' * 1000)"),
    _prints("a surrogate", "import sys; sys.stdout.reconfigure(errors='surrogatepass'); print('\\udcff')"),
    _prints("a text that is equal to all", "class S(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\nprint(S('x'))"),
    _prints("a verdict", "print('PASS'); print('{\"status\": \"pass\"}')"),
    _prints("for ever", "while True: print(2119)"),
    _prints("expected in words", "print('expected 2119, printed 2119')"),
)  # fmt: skip
SCRIPT_FORGERIES = (*EXAMPLES_ONLY, *LEAVING, *LOOKING, *TELLING, *PRINTING)
