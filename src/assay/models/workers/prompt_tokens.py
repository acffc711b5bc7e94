"""Convert a prompt to the tokens that a model is given."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from assay.models.model import Rendered
from assay.models.named_values import NamedValue, by_name
from assay.models.settings import SWITCHES, thinking_variables
from assay.models.workers.gap_prompt import gap_prompt
from assay.models.workers.messages import RenderReply, TemplateSettings
from assay.models.workers.template_process import TemplateLimitError, TemplateProcess
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.formats.gaps import Gap

    Render = Callable[[Sequence[Message]], str]


PROBE = (Message("user", "hello"),)
BEGUN = "-[[the-model-continues-here]]-"


def template_of(tokenizer: Any, variables: Sequence[NamedValue] = ()) -> Callable[[Any], str]:
    """Return a function that renders messages up to the point where the model answers."""

    def apply(messages: Any) -> str:
        return str(
            tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **by_name(variables)
            )
        )

    return apply


def template_process(tokenizer: Any, settings: TemplateSettings) -> TemplateProcess:
    """Return a renderer with a worker's settings. Raise ValueError if it cannot switch thinking."""
    if settings.thinking:

        def render(variables: Sequence[NamedValue]) -> str:
            with contextlib.closing(TemplateProcess(template_of(tokenizer, variables))) as process:
                return process.render(PROBE)

        check_switch(render)
    return TemplateProcess(template_of(tokenizer, settings.variables))


def check_switch(render: Callable[[Sequence[NamedValue]], str]) -> None:
    """Raise ValueError if a chat template renders the same text with thinking on and off."""
    if render(thinking_variables(True)) == render(thinking_variables(False)):
        raise ValueError(
            f"its chat template has no switch for thinking ({' or '.join(SWITCHES)}). "
            "Drop --thinking."
        )


def render_chat(render: Render, prompt: Prompt) -> str:
    """Render messages up to the answer, or up to the end of its prefill.

    The template renders the prefill too, as EvalPlus lets it: some write more before an answer than
    they do to ask for one. A mark shows where the prefill ends.
    """
    if not prompt.prefill:
        return render(prompt.messages)
    begun = Message("assistant", prompt.prefill + BEGUN)
    text, mark, _ = render((*prompt.messages, begun)).partition(BEGUN)
    if not (mark and text.endswith(prompt.prefill)):
        raise ValueError("its chat template does not keep the beginning of an answer as it is")
    return text


def prompt_text(render: Render, prompt: Prompt, gap: Gap | None = None) -> str:
    """Render messages with the chat template, up to the answer. Return a text as it is."""
    if gap is not None:
        return gap.tokens.mark(prompt.text, prompt.suffix or "")
    return render_chat(render, prompt) if prompt.messages else prompt.text


def prompt_tokens(
    tokenizer: Any, render: Render, prompt: Prompt, gap: Gap | None = None
) -> list[int]:
    """Return the prompt's tokens. Special tokens that it spells out are not added again."""
    if gap is not None:
        return _gap_tokens(tokenizer, prompt, gap)
    text = prompt_text(render, prompt)
    spelt_out = bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
    tokens: list[int] = tokenizer.encode(
        text, add_special_tokens=not (prompt.messages or spelt_out)
    )
    return tokens


def _gap_tokens(tokenizer: Any, prompt: Prompt, gap: Gap) -> list[int]:
    def encode(text: str) -> list[int]:
        found: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return found

    first = tokenizer.encode("")[:1]  # some tokenizers add an end too
    start = first if first == [tokenizer.bos_token_id] else []
    return gap_prompt(encode, start, gap, prompt.text, prompt.suffix or "")


def render_prompt(
    tokenizer: Any, render: Render, prompt: Prompt, gap: Gap | None = None
) -> RenderReply:
    """Return the prompt as the model is given it."""
    try:
        text = prompt_text(render, prompt, gap)
        tokens = prompt_tokens(tokenizer, render, prompt, gap)
    except TemplateLimitError:
        raise
    except Exception as failure:  # a template may raise anything
        return RenderReply(Rendered(""), f"it cannot be rendered: {failure}")
    pieces = [tokenizer.decode([token], clean_up_tokenization_spaces=False) for token in tokens]
    return RenderReply(Rendered(text, tuple(tokens), tuple(pieces)))
