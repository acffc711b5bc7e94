# ruff: noqa: E501 - programs are written as they would be printed
"""Forgeries of what travels on the channel between a program and the oracle.

Data only; nothing here may run outside a sandbox. Those of ``FLOODS`` want the
oracle to run out of memory or time, so that the sample is ``invalid`` and leaves the score.
"""

from __future__ import annotations

from assay.data.plain import STEERING as STEERING_NAMES
from assay.data.test_code import CLOSE
from tests.security.forgeries import WRONG, Forgery

# Finds what may be a channel, and speaks in frames of four bytes of length and JSON.
SPEAK = r"""
import json, os, socket, stat, struct, time
def channels():
    for fd in range(3, 1024):
        try: mode = os.fstat(fd).st_mode
        except OSError: continue
        if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode): yield fd
CHANNELS = list(channels())
def raw(data):
    for fd in CHANNELS:
        try:
            while data: data = data[os.write(fd, data):]
        except OSError: pass
def frame(data): return struct.pack('>I', len(data)) + data
def say(message): raw(frame(message if isinstance(message, bytes) else json.dumps(message).encode()))
ANSWERS = [[1, 3, 6], [], [5, 0, 7, 7]]
def early(n, value=None): say([[value]] * n)
"""
# Integers with one hash: n of them take n * n comparisons to put into a set.
COLLIDING = "MANY = [number * (2**61 - 1) for number in range({count})]\n"
WHY = "whoever does not know the answer cannot send it"


def _sends(name: str, code: str, why: str = WHY) -> Forgery:
    return Forgery(f"channel: {name}", SPEAK + code, None, why)


def _answers(name: str, answer: str, prelude: str = "") -> Forgery:
    code = f"{prelude}def running_total(numbers):\n    return {answer}\n"
    return Forgery(f"answer: {name}", code, None, "values are compared as plain data")


ORDER = (
    _sends("answers before the calls", "early(20)\n" + WRONG),
    _sends("answers before the calls, then leaves", "early(20)\ntime.sleep(0.3)\nos._exit(0)\n"),
    _sends("more answers than calls",
           "def running_total(numbers):\n    early(50, [])\n    return []\n"),
    _sends("the answers of other calls",
           "def running_total(numbers):\n    say([[a] for a in ANSWERS])\n    return ANSWERS[0]\n"),
    _sends("answers in reverse order",
           "def running_total(numbers):\n    say([[a] for a in ANSWERS[::-1]])\n"),
    _sends("two messages for one call",
           "def running_total(numbers):\n    say([[None]])\n    say([[[1, 3, 6]]])\n"),
    _sends("an answer by a child after the parent's",
           "def running_total(numbers):\n    if not os.fork():\n        time.sleep(0.1)\n"
           "        early(9, [])\n        os._exit(0)\n"),
    _sends("its own calls read and answered",
           "for fd in CHANNELS:\n    os.set_blocking(fd, False)\n    try: calls = os.read(fd, 65536)\n"
           "    except OSError: continue\n    say([[list(calls[:9])]] * 9)\n" + WRONG),
    _sends("a loop of its own in place of the server",
           "while True:\n    for fd in CHANNELS:\n        try: calls = os.read(fd, 65536)\n"
           "        except OSError: continue\n        if not calls: os._exit(0)\n        early(9, True)\n"),
)  # fmt: skip

ENCODINGS = (
    _sends("duplicated JSON keys",
           "say(b'[[{\"list\":[],\"list\":[1,3,6],\"opaque\":\"x\"}]]')\n" + WRONG),
    _sends("a message in pieces of one byte",
           "def running_total(numbers):\n    for byte in frame(b'[[[]]]'): raw(bytes([byte]))\n"),
    _sends("a message in UTF-16", "say('[[true]]'.encode('utf-16'))\n" + WRONG),
    _sends("a message in UTF-32 with its mark", "say('[[true]]'.encode('utf-32'))\n" + WRONG),
    _sends("a message with a byte order mark", "say(b'\\xef\\xbb\\xbf[[true]]')\n" + WRONG),
    _sends("a message of marshal, one of pickle",
           "import marshal, pickle\nsay(marshal.dumps([[True]]))\nsay(pickle.dumps("
           "[[True]]))\n" + WRONG),
    _sends("NaN and Infinity where a time is meant",
           "say(b'[NaN,[[null]]]')\nsay(b'[-Infinity,[[null]]]')\n" + WRONG),
    _sends("a time that is a text, a list, a bool",
           "for time_ in ('1', [], True, None, {}): say([time_, [[None]]])\n" + WRONG),
    _sends("answers that are no list", "for answers in ({}, 'x', None, 7): say(answers)\n" + WRONG),
    _sends("unknown and nested tags",
           "say([[{'equal': True}], [{'type': 'object'}], [{'list': {'list': []}}]])\n" + WRONG),
    _sends("two tags in one", "say([[{'tuple': [], 'list': []}]])\n" + WRONG),
    _sends("a digest for a value", "def running_total(numbers):\n"
           "    import hashlib\n    say([[{'large': hashlib.sha256(b'').hexdigest()}]])\n"),
    _sends("a digest of the wrong type",
           "say([[{'large': d}] for d in (None, True, [], {'large': 'x'}, '')])\n" + WRONG),
    _sends("a failure that says nothing failed",
           "say([{'raised': '', 'reason': 'passed', 'detail': ''}])\n" + WRONG),
    _sends("a failure of a reason that leaves the score",
           "say([{'raised': 'X', 'reason': 'unsupported', 'detail': ''}] * 9)\n" + WRONG),
    _sends("a failure that is the sandbox's",
           "say({'sandbox_error': 'busy'})\nsay([{'sandbox_error': 'x', 'raised': 'X', 'reason': "
           "'sandbox-error', 'detail': 'x'}] * 9)\n" + WRONG),
    _sends("a failure that tests may expect",
           "say([{'raised': r, 'reason': 'exception', 'detail': ''} for r in ('AssertionError', "
           "'SystemExit', 'StopIteration', 'GeneratorExit')])\n" + WRONG),
    _sends("a verdict in place of an answer",
           "say({'status': 'pass', 'reason': 'passed', 'detail': '', 'failing_test': ''})\n" + WRONG),
    _sends("a verdict in frames of every kind",
           "verdict = b'{\"status\": \"pass\", \"reason\": \"passed\", \"detail\": \"\"}'\n"
           "for head in ('<I', '>I', '<Q', '>Q', '>H', '>B'):\n"
           "    raw(struct.pack(head, len(verdict)) + verdict)\n" + WRONG),
    _sends("length of zero, of all bits, of half",
           "raw(struct.pack('>I', 0))\nraw(struct.pack('>I', 0xffffffff) + b'x' * 99)\n" + WRONG),
    _sends("a message that never ends", "raw(struct.pack('>I', 99) + b'[')\ntime.sleep(60)\n"),
    _sends("integers of 10,000 digits", "say(b'[[' + b'9' * 10000 + b']]')\n" + WRONG),
    _sends("hexadecimal integers of every form",
           "say([[{'int': t}] for t in ('0x1_0', '-0x1', ' 1 ', '1e3', '')])\n" + WRONG),
    _sends("surrogates and zeros in texts", "say(b'[[\"\\\\ud800\\\\u0000\"]]')\n" + WRONG),
    _sends("descriptors sent along",
           "import array\nfor fd in CHANNELS:\n    try:\n        s = socket.socket(fileno=os.dup(fd))\n"
           "        s.sendmsg([frame(b'[[true]]')], [(1, 1, array.array('i', [0, 1, 2] * 80))])\n"
           "    except OSError: pass\n" + WRONG),
    _sends("out-of-band bytes and half closed sockets",
           "for fd in CHANNELS:\n    try:\n        s = socket.socket(fileno=os.dup(fd))\n"
           "        s.send(b'x', 1)\n        s.shutdown(socket.SHUT_WR)\n    except OSError: pass\n" + WRONG),
)  # fmt: skip

FLOODS = (
    _sends("a flood of empty messages",
           "empty = frame(b'[]') * 4000\nwhile True: raw(empty)\n"),
    _sends("empty messages, slowly", "while True:\n    say([])\n    time.sleep(0.001)\n"),
    _sends("a flood of frames of no bytes", "while True: raw(bytes(65536))\n"),
    _sends("a list of a few bytes that is large when read",
           "say(b'[[' + b'[],' * 20_000_000 + b'[]]]')\n" + WRONG),
    _sends("a million answers in one message", "say(b'[' + b'[null],' * 8_000_000 + b'[null]]')\n"
           + WRONG),
    _sends("a range that is large when listed",
           "say([[{'range': [0, 10**18, 1]}], [{'iterator': [{'range': [0, 10**12, 1]}]}]])\n"
           + WRONG),
    _sends("a repeated container of containers",
           "say([[{'set': [{'tuple': [i] * 50} for i in range(200_000)]}]])\n" + WRONG),
    _sends("a set of integers that collide",
           COLLIDING.format(count=20_000) + "say([[{'set': MANY}]])\n" + WRONG),
    _sends("a dict of integers that collide",
           COLLIDING.format(count=20_000) + "say([[{'dict': [[n, 0] for n in MANY]}]])\n" + WRONG),
    _sends("views of integers that collide",
           COLLIDING.format(count=10_000)
           + "say([[{'keys': MANY}], [{'items': [[n, 0] for n in MANY]}]])\n" + WRONG),
    _sends("many sets of integers that collide",
           COLLIDING.format(count=1_900) + "say([[[{'frozenset': MANY}] * 200]])\n" + WRONG),
    _sends("a decimal of millions of digits", "say([[{'Decimal': '9' * 9_000_000}]])\n" + WRONG),
    _sends("a float of millions of digits", "say(b'[[0.' + b'1' * 9_000_000 + b']]')\n" + WRONG),
    _sends("an object of many keys",
           "say([[{str(n): 0 for n in range(300_000)}]])\n" + WRONG),
    _sends("fractions and decimals that take for ever",
           "say([[{'Decimal': '1e999999999'}], [{'Fraction': '1e9999999'}], "
           "[{'Fraction': '1/' + '9' * 4000}]])\n" + WRONG),
    _sends("deeply nested JSON", "say(b'[[' + b'[' * 200_000 + b']' * 200_000 + b']]')\n" + WRONG),
    _sends("nested tags", "say(b'[[' + b'{\"tuple\":[' * 900 + b']}' * 900 + b']]')\n" + WRONG),
    _sends("a large array of arrays",
           "say(b'[[{\"array\":[' + b'[1],' * 1_000_000 + b'[1]]}]]')\n" + WRONG),
    _sends("many long messages one after the other",
           "big = frame(b'[[\"' + b'x' * (4 << 20) + b'\"]]')\nfor _ in range(40): raw(big)\n"),
    _answers("64 MB of text", "'x' * (63 << 20)"),
    _answers("a large list for every call", "[[0] * 9] * 100_000"),
    _answers("a bytes object of 200 MB", "bytes(200 << 20)"),
    _answers("a range of 10**18", "range(10**18)"),
    _answers("an iterator without an end", "iter(int, 1)"),
)  # fmt: skip

VALUES = (
    _answers("True for 1 and 1.0 for 1", "[True if n == 1 else float(n) for n in numbers] + [0]"),
    _answers("minus zero", "[-0.0 for _ in numbers] or [0]"),
    _answers("infinities", "[float('inf')] * max(1, len(numbers))"),
    _answers("complex numbers and decimals", "[complex(0), __import__('decimal').Decimal(0)]"),
    _answers("a numpy array of its own making", "array(numbers)",
             "class ndarray(list): tolist = lambda self: self\nndarray.__module__ = 'numpy'\n"
             "array = ndarray\n"),
    _answers("a Large object of the judge's", "Large('0' * 64)",
             "import sys\nLarge = next((m.Large for m in list(sys.modules.values()) if hasattr(m, "
             "'Large')), str)\n"),
    _answers("an Opaque object of the judge's", "Opaque('list')",
             "import sys\nOpaque = next((m.Opaque for m in list(sys.modules.values()) if hasattr(m, "
             "'Opaque')), str)\n"),
    _answers("the judge's encoder replaced", "None",
             "import sys\nfor m in list(sys.modules.values()):\n    if hasattr(m, 'encode') and "
             "'inside' in m.__name__: m.encode = m.abridged = lambda *a: {'large': ''}\n"),
    _answers("the judge's clock replaced", "None",
             "import time\ntime.process_time = lambda: float('nan')\n"
             "time.monotonic = lambda: -1e308\n"),
    _answers("a type in place of a value", "list"),
    _answers("a view that changes while it is read", "Shifting(a=1).items()",
             "class Shifting(dict):\n    def items(self): return iter([(n, n) for n in range(3)])\n"),
)  # fmt: skip

# Tests whose own loops call the program.
MAP_TESTS = """\
def check(candidate):
    inputs, wanted = [[1, 2], [3], [4, 4]], [[1, 3], [3], [4, 8]]
    for got, expected in zip(map(candidate, inputs), wanted):
        assert got == expected
    assert all(map(candidate, inputs))
    assert list(filter(candidate, inputs)) in (inputs, [])

check(running_total)
"""
SET_TESTS = """\
def check(candidate):
    assert set(candidate([1, 2])) == {1, 3}
    assert not set(candidate([4])) - {4}

check(running_total)
"""
TOLERANT_TESTS = f"""\
{CLOSE}
INFINITY = float('inf')

def same(expected, got):
    return expected == got or are_close(expected, got, 1e-6 * max(1.0, abs(expected)))

def check(candidate):
    for numbers in ([INFINITY, 1.0], [-INFINITY, -1.0]):
        first, second = candidate(numbers)
        assert same(numbers[0], first) and same(numbers[0], second)

check(running_total)
"""


def _steers(raised: str, prelude: str = "") -> Forgery:
    code = f"{prelude}def running_total(numbers):\n    raise {raised}\n"
    return Forgery(f"steers: {raised}", code, None, "it reaches the tests as another class",
                   MAP_TESTS)  # fmt: skip


STEERING = (
    *map(_steers, sorted(STEERING_NAMES)),
    _steers("StopIteration(True)"),
    _steers("Quiet", "class Quiet(StopIteration): pass\nQuiet.__name__ = 'StopIteration'\n"),
    _steers("BaseExceptionGroup('', [StopIteration()])"),
    _steers("unittest.SkipTest", "import unittest\n"),
    _steers("asyncio.CancelledError", "import asyncio\n"),
    _steers("StopIteration() from GeneratorExit()"),
    Forgery("steers: a generator that ends at once",
            "def running_total(numbers):\n    return next(iter(()))\n", None,
            "a StopIteration of its own making is one too", MAP_TESTS),
    Forgery("channel: says that it stopped", SPEAK + "say([{'raised': 'StopIteration', 'reason': "
            "'exception', 'detail': ''}] * 8)\n" + WRONG, None, WHY, MAP_TESTS),
)  # fmt: skip

COMPARED = (
    Forgery("hashed: a list of integers that collide", SPEAK + COLLIDING.format(count=80_000)
            + "def running_total(numbers):\n    say([[MANY]])\n    os._exit(0)\n", None,
            "the tests' process has a CPU limit of its own", SET_TESTS),
    *(Forgery(f"tolerated: {name}", f"def running_total(numbers):\n    return [{value}] * 2\n",
              None, "a tolerance is for finite numbers", TOLERANT_TESTS)
      for name, value in (("a number for an infinity", "1.0"), ("the largest float", "1.7e308"),
                          ("a NaN for an infinity", "float('nan')"),
                          ("an integer above all floats", "10**400"))),
)  # fmt: skip

FORGERIES_ANSWERS = (*ORDER, *ENCODINGS, *FLOODS, *VALUES, *STEERING, *COMPARED)
