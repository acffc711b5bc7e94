"""Read a user's YAML: plain values only, and no small file that expands to a large one."""

from __future__ import annotations

import re
from typing import Any

import yaml

MOST_DEPTH = 30
MOST_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """Limit the depth, and what aliases multiply, in PyYAML's safe loader."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._count = 0
        self._counts: dict[int, int] = {}  # nodes in each finished node, aliases written out

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._counts:
                raise yaml.YAMLError("an alias is inside the value that it names")
            self._add(self._counts[id(node)])
            return node
        before = self._count
        self._add(1)
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise yaml.YAMLError(f"nested more than {MOST_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._counts[id(node)] = self._count - before
        return node

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > MOST_VALUES:
            raise yaml.YAMLError(f"more than {MOST_VALUES:,} values after expanding aliases")

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep)
        if len(found) != len(node.value):
            raise yaml.YAMLError("a key is there twice")
        return found


# PyYAML reads YAML 1.1, in which 1e-9 is a string.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+"), list("-+0123456789")
)


def parse_yaml(text: str) -> list[Any]:
    """Return the documents that are not empty. Raise ValueError with one line if invalid."""
    try:
        documents = list(yaml.load_all(text, _Loader))
    except Exception as error:  # for odd scalars, PyYAML raises whatever int() or float() do
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error
    return [document for document in documents if document is not None]
