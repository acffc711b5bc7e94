"""Dishonest answers to benchmarks that ask for a literal or a call, not for a program.

``FORGED_LITERALS`` answer "what does ``f(17)`` return?" without knowing. ``FORGED_CALLS`` know the
expected output, which is part of the question, and try to return it without an input that leads
there. ``FORGED_METHODS`` do so where the function calls methods of its argument. Data only; what is
executed runs in the sandbox. ``passes_upstream`` says what upstream's judge does, which executes
``assert OUTPUT == ANSWER`` after the code.
"""

from __future__ import annotations

from dataclasses import dataclass

CODE = "def f(n):\n    return n * 3 + 4\n"
METHODS = (
    "DATA = [1]\ndef f(text):\n    return len(DATA) * text.strip().count('a')\n"  # calls methods
)
ARGUMENT, OUTPUT = "17", "55"


@dataclass(frozen=True, slots=True)
class ForgedAnswer:
    name: str
    answer: str
    passes_upstream: bool


FORGED_LITERALS = (
    ForgedAnswer("call with blanks", "f( 17 )", True),
    ForgedAnswer("call by another spelling", "f(0x11)", True),
    ForgedAnswer("call by keyword", "f(n=17)", True),
    ForgedAnswer("call in brackets", "(f)(17)", True),
    ForgedAnswer("call in a list", "[f(17 )][0]", True),
    ForgedAnswer("call over two lines", "f(\n17)", True),
    ForgedAnswer("call by map", "next(map(f, [17]))", True),
    ForgedAnswer("equal to everything", "type('', (), {'__eq__': lambda s, o: True})()", True),
    ForgedAnswer("any of many", "__import__('unittest.mock').mock.ANY", True),
    ForgedAnswer("end of the assertion", "0 or True", True),
    ForgedAnswer("true comparison", "0 < 1 or 1", True),
    ForgedAnswer("another statement", "55 if 0 else f(17 )", True),
    ForgedAnswer("replaced comparison", "0, exit(0)", False),
    ForgedAnswer("raised exit", "exit(0)", False),
    ForgedAnswer("comment", "f(17) # 55", False),
    ForgedAnswer("walrus", "(x := f(17 ))", True),
    ForgedAnswer("f-string", "int(f'{f(17 )}')", True),
    ForgedAnswer("lambda", "(lambda: f(17 ))()", True),
    ForgedAnswer("set of all answers", "{*range(1000)}", False),
    ForgedAnswer("nothing", "", False),
)

FORGED_CALLS = (
    ForgedAnswer("the output itself", "55", False),
    ForgedAnswer("the output instead of the call", "55 or f(1)", True),
    ForgedAnswer("the output after the call", "(f(1), 55)[1]", True),
    ForgedAnswer("the call plus what is missing", "f(1) + 48", True),
    ForgedAnswer("a call that is not the last", "[55, f(1)][0]", True),
    ForgedAnswer("a method of the call", "f(1).__class__(55)", True),
    ForgedAnswer("another function", "(lambda *f: 55)(f(1))", True),
    ForgedAnswer("function replaced", "f(globals().update(f=lambda n: 55))", False),
    ForgedAnswer("function replaced before",
                 "[globals().update(f=lambda n: 55), f(1)][1]", True),
    ForgedAnswer("replaced by an argument",
                 "f(f.__globals__.__setitem__('f', lambda n: 55) or 1)", False),
    ForgedAnswer("code replaced", "f(setattr(f, '__code__', (lambda n: 55).__code__))", True),
    ForgedAnswer("code replaced by a method",
                 "f(f.__setattr__('__code__', (lambda n: 55).__code__))", True),
    ForgedAnswer("frame", "f((x for x in [1]).gi_frame.f_globals.clear())", False),
    ForgedAnswer("number that lies",
                 "f(type('N', (int,), {'__mul__': lambda s, o: 51})(1))", True),
    ForgedAnswer("object that lies",
                 "f(type('N', (), {'__mul__': lambda s, o: 51})())", True),
    ForgedAnswer("object equal to everything",
                 "f(type('N', (), {'__mul__': lambda s, o: s, '__add__': lambda s, o: s,"
                 " '__eq__': lambda s, o: True})())", True),
    ForgedAnswer("mock", "f(__import__('unittest.mock').mock.MagicMock())", False),
    ForgedAnswer("walrus", "(f := lambda n: 55)(1)", False),
    ForgedAnswer("exit", "f(exit(0))", False),
    ForgedAnswer("system exit", "f(__import__('os')._exit(0))", False),
    ForgedAnswer("evaluated", "f(eval('17'))", True),
    ForgedAnswer("evaluated beside a parameter of that name",
                 "f([lambda eval: 0, eval('17')][1])", True),
    ForgedAnswer("evaluated beside a variable of that name",
                 "f([[1 for exec in [1]], eval('17'), [1 for eval in [1]]][1])", True),
    ForgedAnswer("evaluated in the first loop of a comprehension",
                 "f([eval for eval in [eval('17')]][0])", True),
    ForgedAnswer("evaluated in a default value", "f((lambda eval=eval('17'): eval)())", True),
    ForgedAnswer("builtins replaced", "f(__builtins__.update(len=1))", False),
    ForgedAnswer("another statement", "f(1)\nf = lambda n: 55", False),
    ForgedAnswer("unbalanced", "f(1))\ndef answer(): return (55", False),
    ForgedAnswer("nothing", "", False),
)  # fmt: skip

# Functions have room for attributes, and the target of a comprehension is assigned to.
_BY_TARGETS = "for h.count in [lambda *_: 55] for h.strip in [lambda: h]"
_LIAR = f"[h for h in [lambda: 0] {_BY_TARGETS}]"
FORGED_METHODS = (
    ForgedAnswer("methods by targets", f"f({_LIAR}[0])", True),
    ForgedAnswer("methods by a keyword", f"f(text={_LIAR}[0])", True),
    ForgedAnswer("methods by unpacking", f"f(*{_LIAR})", True),
    ForgedAnswer("methods by unpacked keywords", f"f(**{{'text': {_LIAR}[0]}})", True),
    ForgedAnswer("methods by a tuple of targets",
                 "f([h for h in [lambda: 0] for h.count, h.strip in"
                 " [(lambda *_: 55, lambda: h)]][0])", True),
    ForgedAnswer("methods by a generator",
                 f"f(list(h for h in [lambda: 0] {_BY_TARGETS})[0])", True),
    ForgedAnswer("methods by a set", f"f({{h for h in [lambda: 0] {_BY_TARGETS}}}.pop())", True),
    ForgedAnswer("methods by a dict",
                 f"f({{h: 0 for h in [lambda: 0] {_BY_TARGETS}}}.popitem()[0])", True),
    ForgedAnswer("methods in a lambda",
                 f"f((lambda h: [h {_BY_TARGETS}][0])(lambda: 0))", True),
    ForgedAnswer("methods by map",
                 f"f(list(map(lambda h: [h {_BY_TARGETS}][0], [len]))[0])", False),
    ForgedAnswer("methods of the function itself",
                 "f([f for f.count in [lambda *_: 55] for f.strip in [lambda: f]][0])", True),
    ForgedAnswer("methods of a method's copy",
                 f"f([h for h in [lambda: 0].copy() {_BY_TARGETS}].pop())", True),
    ForgedAnswer("an item by a target",
                 "f([d for d in [['']] for d[0] in ['a' * 9]][0][0])", False),
    ForgedAnswer("the function as its own argument", "f(f)", False),
    ForgedAnswer("a bare lambda", "f(lambda *_: 55)", False),
    ForgedAnswer("a lambda in a list", "f([lambda *_: 55])", False),
    ForgedAnswer("a bound method", "f(''.count)", False),
    ForgedAnswer("a generator", "f(x for x in 'a' * 55)", False),
    ForgedAnswer("a type", "f(str)", False),
    ForgedAnswer("data of the benchmark changed",
                 "f([DATA.extend([0] * 54), 'a'][1])", True),
    ForgedAnswer("data of the benchmark changed later",
                 "f(*map(lambda x: DATA.extend([0] * 54) or x, ['a']))", True),
)  # fmt: skip
