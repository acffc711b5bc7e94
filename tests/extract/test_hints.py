"""Names of typing that nobody imported."""

from __future__ import annotations

import pytest

from assay.extract.rules.hints import with_hints

CODE = "def f(x: List[int]) -> Optional[int]:\n    return x[0]\n"


def test_they_are_imported() -> None:
    assert with_hints(CODE, "") == f"from typing import List, Optional\n{CODE}"
    assert with_hints(CODE, "from typing import List\n") == f"from typing import Optional\n{CODE}"


@pytest.mark.parametrize(
    "code",
    [
        f"from typing import List, Optional\n{CODE}",
        f"from typing import *\n{CODE}",
        f"from __future__ import annotations\n{CODE}",
        'def f(x):\n    """A List of Any kind."""\n    return x\n',
        "List = list\ndef f(x: List) -> int: ...\n",
        "class Set: pass\ndef f(x: Set): ...\n",
        "def f(x: List[):\n",
        "import typing\ndef f(x: typing.List): ...\n",
    ],
)
def test_where_none_is_missing_nothing_is_added(code: str) -> None:
    assert with_hints(code, "") == code


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return Counter(x)\n",
        "def f(x: Counter) -> int:\n    return Counter(x)['a']\n",
        "def f(x: Counter()):\n    return x\n",
        "def f(x):\n    return isinstance(x, List)\n",
        "Vector = List[int]\ndef f(x: Vector): ...\n",
        "class P(NamedTuple):\n    x: int\ndef f(): ...\n",
        "T = TypeVar('T')\nclass A(Generic[T]): ...\n",
        "def f(x=Deque()): ...\n",
        "@Callable\ndef f(x): ...\n",
        'def f(x: "List[int]"): ...\n',
    ],
)
def test_what_a_program_uses_is_not_imported_for_it(code: str) -> None:
    assert with_hints(code, "") == code


@pytest.mark.parametrize(
    "code",
    [
        "def f(x: Dict[str, Counter[str]]): ...\n",
        "def f(*x: Counter, **y: Dict): ...\n",
        "def f(x) -> tuple[Counter, Dict]: ...\n",
        "x: Counter = {}\ny: Dict\ndef f(): ...\n",
        "class A:\n    x: Counter\n    async def f(self, y: Dict): ...\n",
        "def f():\n    def g(x: Counter) -> Dict: ...\n",
        "def f(x: Counter | None, y: Dict = {}): ...\n",
    ],
)
def test_annotations_anywhere_count(code: str) -> None:
    assert with_hints(code, "") == f"from typing import Counter, Dict\n{code}"


def test_one_name_used_and_another_in_annotations() -> None:
    code = "def f(x: List[int]):\n    return Counter(x)\n"
    assert with_hints(code, "") == f"from typing import List\n{code}"


@pytest.mark.parametrize("future", ["division", "(\n    division,\n)"])
@pytest.mark.parametrize("before", ["", '"""Words."""\n', "# words\n"])
def test_imports_from_the_future_stay_first(future: str, before: str) -> None:
    start = f"{before}from __future__ import {future}\n"
    found = with_hints(f"{start}import math\n{CODE}", "")
    assert found == f"{start}from typing import List, Optional\nimport math\n{CODE}"
    compile(found, "", "exec")
