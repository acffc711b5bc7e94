# ruff: noqa: E501 - programs are written as they would be printed
"""Forgeries that search memory for what earlier jobs left: references, programs, tests, outputs.

Data only; nothing here may run outside a sandbox. They are meant to run after an honest sample of
the same task, and pass if its process ever held the reference or the tests.
"""

from __future__ import annotations

from tests.security.forgeries import Forgery

# Takes a function out of memory. The text that it looks for never stands whole in this program.
SEEK = r"""
import ctypes, gc, os, re, sys
NAME = 'running_total'
NEEDLE = ' '.join(['def', NAME + '(']).encode()
libc = ctypes.CDLL(None, use_errno=True)
functions = []

def take(data):
    for found in re.finditer(re.escape(NEEDLE), data):
        text = data[found.start() : found.start() + 6000].split(b'\0')[0].decode('latin-1')
        if '\n' not in text.split('")')[0]:
            text = text.split('", "')[0].split('","')[0]
            text = text.replace('\\n', '\n').replace('\\"', '"').replace('\\\\', '\\')
        lines = text.split('\n')
        for end in range(len(lines), 1, -1):
            space = {}
            try:
                exec('from typing import *\nimport math, re, collections', space)
                exec('\n'.join(lines[:end]), space)
                functions.append((end, space[NAME]))
                break
            except BaseException:
                continue

def maps(rights):
    for line in open('/proc/self/maps'):
        where, has, *_ = line.split()
        if has.startswith(rights) and '[v' not in line:
            start, end = (int(word, 16) for word in where.split('-'))
            yield start, end - start

def forged(*arguments, **named):
    return max(functions, key=lambda pair: pair[0])[1](*arguments, **named)
globals()[NAME] = forged
"""
# Walks outwards from an object's address; ``readable(address)`` is what lies there.
AROUND = r"""
def around(seeds, readable, step=65536, most=4000):
    for seed in seeds:
        for direction in (step, -step):
            address, misses = seed // step * step, 0
            for _ in range(most):
                data = readable(address)
                misses = 0 if data else misses + 1
                if misses > 64: break
                take(data)
                address += direction
seeds = [id(object()), id(sys.modules), id('x' * 999), id(b'x' * 99999)]
ends = os.pipe()
def by_write(address):
    size = libc.write(ends[1], ctypes.c_void_p(address), 65536)
    return os.read(ends[0], 65536) if size > 0 else b''
"""
# Looks for values beside the arguments instead of a function.
VALUES = r"""
import ctypes, os, re, sys
text = ''
def keep(data):
    global text
    text += '\n'.join(re.findall('[\\n\\t -~]{12,}', data.decode('latin-1')))
def own_memory():
    memory = open('/proc/self/mem', 'rb', 0)
    for line in open('/proc/self/maps'):
        where, has, *_ = line.split()
        if has.startswith('rw') and '[v' not in line:
            start, end = (int(word, 16) for word in where.split('-'))
            memory.seek(start)
            try: keep(memory.read(end - start))
            except OSError: pass
own_memory()
"""
AFTER = r"""
def running_total(numbers):
    for found in re.finditer(re.escape(@KEY@), text):
        try: return eval(re.match(@VALUE@, text[found.end():found.end() + 400])[1])
        except Exception: continue
"""


def _scan(name: str, code: str) -> Forgery:
    return Forgery(name, SEEK + code, None, "nothing of another job is in the program's memory")


def _values(name: str, key: str, value: str, prelude: str = VALUES) -> Forgery:
    code = prelude + AFTER.replace("@KEY@", key).replace("@VALUE@", value)
    return Forgery(name, code, None, "no expected value was ever in this process")


READERS = (
    _scan(
        "own memory: /proc/self/mem, writable parts",
        "memory = open('/proc/self/mem', 'rb', 0)\nfor start, size in maps('rw'):\n"
        "    memory.seek(start)\n    take(memory.read(size))\n",
    ),
    _scan(
        "own memory: /proc/self/mem, all parts",
        "memory = os.open('/proc/self/mem', os.O_RDONLY)\nfor start, size in maps('r'):\n"
        "    try: take(os.pread(memory, size, start))\n    except OSError: pass\n",
    ),
    _scan(
        "own memory: through a thread's mem file",
        "memory = os.open(f'/proc/thread-self/mem', os.O_RDONLY)\nfor start, size in maps('rw'):\n"
        "    take(os.pread(memory, size, start))\n",
    ),
    _scan(
        "own memory: a child reads its parent's copy",
        "child = os.fork()\nif child == 0:\n    import time; time.sleep(9)\n"
        "memory = os.open(f'/proc/{child}/mem', os.O_RDONLY)\nfor start, size in maps('rw'):\n"
        "    take(os.pread(memory, size, start))\nos.kill(child, 9)\n",
    ),
    _scan("own memory: write(2) to a pipe", AROUND + "around(seeds, by_write)\n"),
    _scan(
        "own memory: writev to a pipe",
        AROUND + "class Part(ctypes.Structure):\n"
        "    _fields_ = (('base', ctypes.c_void_p), ('size', ctypes.c_size_t))\n"
        "def by_writev(address):\n    part = Part(address, 65536)\n"
        "    size = libc.writev(ends[1], ctypes.byref(part), 1)\n"
        "    return os.read(ends[0], 65536) if size > 0 else b''\naround(seeds, by_writev)\n",
    ),
    _scan(
        "own memory: send(2) to a socket",
        AROUND + "import socket\nnear, far = socket.socketpair()\n"
        "def by_send(address):\n    size = libc.send(near.fileno(), ctypes.c_void_p(address),"
        " 65536, 64)\n    return far.recv(size) if size > 0 else b''\naround(seeds, by_send)\n",
    ),
    _scan(
        "own memory: write(2) to a file",
        AROUND + "file = os.open('dump', os.O_RDWR | os.O_CREAT)\n"
        "def by_file(address):\n"
        "    size = libc.pwrite(file, ctypes.c_void_p(address), 65536, 0)\n"
        "    return os.pread(file, size, 0) if size > 0 else b''\naround(seeds, by_file)\n",
    ),
    _scan(
        "own memory: ctypes.string_at over the maps",
        "for start, size in maps('rw'):\n    take(ctypes.string_at(start, size))\n",
    ),
    _scan(
        "own memory: memory views over the maps",
        "for start, size in maps('rw'):\n"
        "    take(bytes(memoryview((ctypes.c_char * size).from_address(start))))\n",
    ),
    _scan(
        "own memory: string_at around an object",
        AROUND + "def by_pointer(address):\n    probe = libc.write(ends[1], "
        "ctypes.c_void_p(address), 4096)\n    if probe <= 0: return b''\n"
        "    os.read(ends[0], 4096)\n    return ctypes.string_at(address, 4096)\n"
        "around(seeds, by_pointer, 4096, 20000)\n",
    ),
    _scan(
        "own memory: process_vm_readv of itself",
        "class Part(ctypes.Structure):\n"
        "    _fields_ = (('base', ctypes.c_void_p), ('size', ctypes.c_size_t))\n"
        "for start, size in maps('rw'):\n    room = ctypes.create_string_buffer(size)\n"
        "    mine, theirs = Part(ctypes.addressof(room), size), Part(start, size)\n"
        "    libc.process_vm_readv(os.getpid(), ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)\n"
        "    take(room.raw)\n",
    ),
    _scan(
        "own memory: process_vm_readv of the parent and pid 1",
        "class Part(ctypes.Structure):\n"
        "    _fields_ = (('base', ctypes.c_void_p), ('size', ctypes.c_size_t))\n"
        "for pid in (1, os.getppid()):\n    for start, size in maps('rw'):\n"
        "        room = ctypes.create_string_buffer(size)\n"
        "        mine, theirs = Part(ctypes.addressof(room), size), Part(start, size)\n"
        "        libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)\n"
        "        take(room.raw)\n",
    ),
    _scan(
        "memory of every process in /proc",
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    for start, size in maps('rw'):\n"
        "        try: take(os.pread(os.open(f'/proc/{pid}/mem', os.O_RDONLY), size, start))\n"
        "        except OSError: break\n",
    ),
    _scan(
        "own memory: uninitialised malloc",
        "libc.malloc.restype = ctypes.c_void_p\n"
        "for size in [*range(64, 9000, 48)] * 8 + [1 << n for n in range(13, 23)] * 4:\n"
        "    take(ctypes.string_at(libc.malloc(size), size))\n",
    ),
    _scan(
        "own memory: uninitialised bytes objects",
        "make = ctypes.pythonapi.PyBytes_FromStringAndSize\nmake.restype = ctypes.py_object\n"
        "make.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t)\n"
        "kept = [make(None, size) for size in [*range(33, 512, 16)] * 40 + [*range(512, 200000, 999)]]\n"
        "for data in kept: take(data)\n",
    ),
    _scan(
        "own memory: free lists of the small object allocator",
        "kept = []\nfor size in range(16, 512, 16):\n    kept += [bytes(size) for _ in range(99)]\n"
        "pools = {id(item) // 16384 * 16384 for item in kept}\n"
        "take(b''.join(ctypes.string_at(pool, 16384) for pool in sorted(pools)))\n",
    ),
    _scan(
        "own memory: the stack above",
        "import threading\nhere = ctypes.create_string_buffer(8)\n"
        "for start, size in maps('rw'):\n    if start > ctypes.addressof(here):\n"
        "        take(ctypes.string_at(start, size))\n",
    ),
    _scan(
        "gc: every string it can reach",
        "seen, waiting = set(), gc.get_objects()\nwhile waiting and len(seen) < 2_000_000:\n"
        "    item = waiting.pop()\n    if id(item) in seen: continue\n    seen.add(id(item))\n"
        "    if type(item) is str: take(item.encode('utf-8', 'replace'))\n"
        "    elif type(item) is bytes: take(item)\n    else: waiting += gc.get_referents(item)\n",
    ),
    _scan(
        "gc: frozen and unreachable objects",
        "gc.unfreeze()\ngc.set_debug(gc.DEBUG_SAVEALL)\ngc.collect()\n"
        "for item in gc.garbage + gc.get_objects():\n    for part in gc.get_referents(item):\n"
        "        if type(part) is str: take(part.encode('utf-8', 'replace'))\n",
    ),
    _scan(
        "frames: every local of every caller",
        "frame = sys._getframe()\nwhile frame := frame.f_back:\n"
        "    for value in [*frame.f_locals.values(), *frame.f_globals.values()]:\n"
        "        take(repr(value).encode()); take(str(value).encode())\n",
    ),
    _scan(
        "modules of the judge: their caches",
        "for name, module in list(sys.modules.items()):\n"
        "    if 'inside' in name or name == '__main__':\n"
        "        for value in vars(module).values(): take(repr(value).encode())\n"
        "        for value in gc.get_referrers(module): take(repr(value)[:99999].encode())\n",
    ),
    _scan(
        "code objects of earlier programs in the heap",
        "def f(): pass\ncodes = {}\nfor start, size in maps('rw'):\n"
        "    data = ctypes.string_at(start, size)\n    key = id(type(f.__code__)).to_bytes(8, 'little')\n"
        "    where = data.find(key)\n    while where >= 0:\n"
        "        found = ctypes.cast(start + where - 8, ctypes.py_object).value\n"
        "        if getattr(found, 'co_name', '') == NAME and found is not forged.__code__:\n"
        "            functions.append((1, type(f)(found, globals())))\n"
        "        where = data.find(key, where + 8)\n",
    ),
    _scan(
        "own memory: text of two and four bytes a letter",
        "memory = os.open('/proc/self/mem', os.O_RDONLY)\nfor start, size in maps('rw'):\n"
        "    data = os.pread(memory, size, start)\n    take(data.replace(b'\\0\\0\\0', b''))\n"
        "    take(data.replace(b'\\0', b''))\n",
    ),
    _scan(
        "own memory: deleted and shared mappings",
        "for line in open('/proc/self/maps'):\n    if 'deleted' in line or ' r' in line[:30] and 's ' in line[:40]:\n"
        "        start, end = (int(word, 16) for word in line.split()[0].split('-'))\n"
        "        take(ctypes.string_at(start, end - start))\n"
        "for name in os.listdir('/proc/self/map_files'):\n"
        "    take(open('/proc/self/map_files/' + name, 'rb').read())\n",
    ),
    _scan(
        "own memory: after a fork and an exec",
        "import subprocess\nscript = 'import sys; print(open(\"/proc/self/environ\").read(), sys.argv, "
        "sys.orig_argv, open(\"/proc/1/cmdline\").read())'\n"
        "take(subprocess.run([sys.executable or 'python3', '-c', script], capture_output=True).stdout)\n",
    ),
)  # fmt: skip

EXPECTED = (
    _values("values: an assert beside the argument", "str(numbers) + ') == '", "r'(\\[.*?\\])'"),
    _values("values: an assert in JSON", "str(numbers) + ') == '", "r'(.*?)\\\\n'"),
    _values("values: a printed pair", "str(numbers) + ' '", "r'(\\[.*?\\])'"),
    _values("values: expected of a table", "'WANTED = ['", "r'(\\[.*?\\])'"),
    _values("values: cases as JSON", "'\"expected\":'", "r'.*?(\\[.*?\\])'"),
    _values("values: a detail of a verdict", "'expected '", "r'(\\[.*?\\]), got'"),
    _values("values: a repr of the last answer", "'gave '", "r'(\\[.*?\\])'"),
    _values("values: earlier answers on their way", "'[[['", "r'(.*?\\])'"),
    _values("values: check's text", "'def check' + '(candidate):'", "r'[^=]*== (\\[.*?\\])'"),
)

FORGERIES_MEMORY = (*READERS, *EXPECTED)
