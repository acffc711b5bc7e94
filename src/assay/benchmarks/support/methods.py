"""Adapt programs whose entry point is a method of a class ``Solution``, as on LeetCode.

The adapter runs in the program's process, after the program. One instance answers all calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.types import ADAPTED

CLASS = "Solution"
NAMED = """\
def {adapted}(*values, _method={owner}().{method}, _names={names!r}, _builders={builders!r}):
    named = dict(zip(_names, values))
    for name, builder in _builders.items():
        named[name] = globals()[builder](named[name])
    return _method(**named)
"""
# Upstream takes a function of the module if the program has no such class.
POSITIONAL = """\
def {adapted}(*values, _method=getattr({owner}() if {owner!r} in globals() else
                                       __import__("sys").modules[__name__], {method!r})):
    return _method(*values)
"""


def with_named_arguments(
    method: str, names: Sequence[str], builders: Mapping[str, str] | None = None
) -> str:
    """Return an adapter that passes arguments by name.

    ``builders`` are functions of the preamble that turn an argument, by name, into linked nodes.
    """
    return NAMED.format(
        adapted=ADAPTED,
        owner=CLASS,
        method=method,
        names=tuple(names),
        builders=dict(builders or {}),
    )


def with_positional_arguments(method: str) -> str:
    """Return an adapter that passes arguments by position."""
    return POSITIONAL.format(adapted=ADAPTED, owner=CLASS, method=method)
