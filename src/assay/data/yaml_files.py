"""Read a user's YAML: plain values only, and no small file that expands to a large one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

MOST_DEPTH = 30
MOST_VALUES = 100_000
TOO_MANY = f"more than {MOST_VALUES:,} values"

TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
# Python writes integers of 4,300 digits and no more. A hexadecimal one of this length has 4,215.
MOST_DIGITS = 3500
BASE_60 = re.compile(r"[-+]?\d[\d_]*(:[0-5]?\d)+(\.\d*)?")  # a number in YAML 1.1: 10:20 is 620

Place = tuple[str | int, ...]  # the keys and positions that lead to a value


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with limits of the depth and of what aliases multiply."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._count = 0
        self._counts: dict[int, int] = {}  # nodes in each finished node, aliases written out

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._counts:
                raise yaml.YAMLError("an alias refers to the value that contains it")
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
            raise yaml.YAMLError(f"{TOO_MANY} after expanding aliases")

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        if node.tag in NUMBERS and len(node.value) > MOST_DIGITS:
            raise ValueError(f"a number has more than {MOST_DIGITS:,} digits")
        return super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) != len(node.value):
            raise yaml.YAMLError("a key occurs twice")
        return mapping

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0] and BASE_60.fullmatch(value):
            return TEXT
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


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


@dataclass(frozen=True, slots=True)
class LocatedData:
    """A document as plain data, and the line of every key and item in it."""

    value: Any
    lines: dict[Place, int]
    repeated: tuple[tuple[Place, int], ...] = ()  # keys that are there again; the first counts
    not_text: tuple[tuple[Place, int], ...] = ()  # keys that YAML reads as a number or the like

    def line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest one around it that is in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def parse_located(text: str) -> LocatedData:
    """Return the only document. Raise ValueError with one line if there is another number."""
    lines: dict[Place, int] = {}
    repeated: list[tuple[Place, int]] = []
    not_text: list[tuple[Place, int]] = []

    def build(node: yaml.Node, place: Place, loader: _Loader) -> Any:
        lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [build(item, (*place, number), loader) for number, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return _construct(node, loader)
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == MERGE or not isinstance(key, yaml.ScalarNode):
                what = "'<<' (merge)" if key.tag == MERGE else "a list or mapping"
                raise ValueError(f"{what} is not supported as a key, line {line}")
            name = str(key.value)
            if key.tag != TEXT:
                not_text.append(((*place, name), line))
            if name in mapping:
                repeated.append(((*place, name), line))
                continue
            lines[(*place, name)] = line
            mapping[name] = build(value, (*place, name), loader)
        return mapping

    try:
        loader = _Loader(text)  # raises for control characters
        node = loader.get_single_node()
        value = None if node is None else build(node, (), loader)
    except Exception as error:  # for odd scalars, PyYAML raises whatever int() or float() do
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error
    return LocatedData(value, lines, tuple(repeated), tuple(not_text))


def _construct(node: yaml.Node, loader: _Loader) -> Any:
    """Return the value of a scalar. Raise ValueError with its line, such as for 2024-13-01."""
    try:
        return loader.construct_object(node)
    except ValueError as error:
        raise ValueError(f"{error}, line {node.start_mark.line + 1}") from error
