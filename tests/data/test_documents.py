"""Files that several versions write: forms, unknown and missing fields, places of mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from assay.data.codec import FieldError
from assay.data.documents import Rest, describe, name_place, read_document, write_document


@dataclass(frozen=True, slots=True)
class Inner:
    depth: int
    unit: str = "m"


@describe(omit={"note": "note"}, checks={"count": lambda value: value != -1})
@dataclass(frozen=True, slots=True)
class Item:
    count: int
    note: str = ""


@describe(
    flat=("inner",),
    skip=("rest",),
    computed={"name": "size"},
    omit_none=True,
    absent=(None,),
    defaults={"items": []},
    required=("name",),
)
@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner | None
    name: str
    items: tuple[Item, ...]
    weight: float = 1.0
    origin: str | None = None
    rest: Rest = field(default_factory=Rest, repr=False)

    @property
    def size(self) -> int:
        return len(self.items)


WHOLE = {"depth": 3, "unit": "m", "name": "n", "size": 1, "items": [{"count": 2}], "weight": 1.0}


def test_a_document_is_written_as_it_was_read() -> None:
    outer = read_document(Outer, WHOLE)
    assert (outer.inner, outer.items) == (Inner(3), (Item(2),))
    assert outer.rest == Rest()
    assert list(write_document(outer)) == list(WHOLE)
    assert write_document(outer) == WHOLE


def test_unknown_and_missing_fields_stay_as_they_are() -> None:
    content = {"name": "n", "items": [{"count": 2, "later": 1}], "origin": None, "future": [1]}
    outer = read_document(Outer, content)
    assert outer.inner is None
    assert outer.rest.unknown == [
        (("items", 0, "later"), 1), (("origin",), None), (("future",), [1]),
    ]  # fmt: skip
    assert outer.rest.missing == [(("size",), 1), (("weight",), 1.0)]
    assert write_document(outer) == content
    assert write_document(replace(outer, weight=2.0)) == content | {"weight": 2.0}


def test_a_value_that_counts_as_missing_is_noted() -> None:
    outer = read_document(Outer, WHOLE | {"weight": None})
    assert outer.rest.changed == [(("weight",), None, 1.0)]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"items": [{"count": 1}, {"count": "x"}]}, "items[1].count"),
        ({"items": [{"count": -1}]}, "items[0].count"),
        ({"items": [{}]}, "items[0].count"),
        ({"name": None}, "name"),
        ({"depth": "x"}, "depth"),
        ({"items": 5}, "items"),
    ],
)
def test_a_mistake_has_its_place(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(FieldError) as error:
        read_document(Outer, {**WHOLE, **changes})
    assert name_place(error.value.place) == place
