"""Register objects by name: modules of a package register themselves, plug-ins by entry point."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import pkgutil
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Registry(Generic[T]):
    """Objects that the public modules of ``package`` and the entry points of that name register.

    Modules are imported at the first look-up, so they must keep heavy imports inside functions.
    """

    def __init__(self, noun: str, package: str, group: str = "", *, plug_ins: bool = True) -> None:
        """Create a registry. ``group`` is the entry point group if it is not the package's name."""
        self._noun = noun
        self._package = package
        self._group = group or package
        self._plug_ins = plug_ins
        self._items: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        def add(item: T) -> T:
            self._items[name] = item
            return item

        return add

    def names(self) -> list[str]:
        self._load()
        return sorted(self._items)

    def get(self, name: str) -> T:
        self._load()
        if name not in self._items:
            close = difflib.get_close_matches(name, self.names())
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise UsageError(
                f"{self._noun} '{name}': unknown.{hint} Choose {', '.join(self.names())}."
            )
        return self._items[name]

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self._package}.{module.name}")
        if self._plug_ins:
            for entry_point in importlib.metadata.entry_points(group=self._group):
                entry_point.load()
