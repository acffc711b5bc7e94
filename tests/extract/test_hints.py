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
