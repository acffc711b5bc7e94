"""Render chat templates by jinja2, with the variables that transformers provides.

It stands alone because only the process that tries a template loads jinja2, if it is installed.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class GenerationExtension(Extension):  # type: ignore[misc]
    """A tag ``{% generation %}``, which marks a model's answer. It renders as the text inside."""

    tags = {"generation"}  # noqa: RUF012 - as the library wants it

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render_template(
    template: str, messages: Sequence[Mapping[str, str]], marks: Mapping[str, str]
) -> str:
    """Return the model's input for these messages, up to where its answer begins."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationExtension, loopcontrols]
    )
    environment.filters["tojson"] = lambda value, indent=None, **_: json.dumps(
        value, ensure_ascii=False, indent=indent
    )
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    variables = {
        "messages": messages,
        "add_generation_prompt": True,
        "tools": None,
        "documents": None,
    }
    return str(environment.from_string(template).render(**variables, **marks))


def _refuse(why: str) -> None:
    raise TemplateError(why)
