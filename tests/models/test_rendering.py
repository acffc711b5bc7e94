"""What a model is really given: one first token, the template's white space, marks of thoughts."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from assay.errors import ModelError
from assay.formats.marks import thought_tags
from assay.models import EngineOptions, Rendered, open_model
from assay.types import Benchmark, Decoding, Message, Prompt, Request
from tests.conftest import Cli
from tests.models import small_models
from tests.models.small_models import SPECIAL, TOKENS, TYPES, write_small

pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")
pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
from assay.models.engines.torch.load import load
from assay.models.engines.torch.texts import TextConverter
from assay.models.engines.torch.torch_model import TorchSettings
from assay.models.workers.engine_messages import RenderReply
from assay.models.workers.prompt_tokens import TemplateProcess, render_prompt, template_of
from tests.models.test_hf import FakeLines

pytestmark = [pytest.mark.model, pytest.mark.torch]

ENGINES = ("gguf", "hf")
BOS = SPECIAL.index("<|im_start|>")
CHAT = Prompt(messages=(Message("user", "hello"),))
BODY = "{% for m in messages %}[{{ m['content'] }}]{% endfor %}"
THINKS = "{% for m in messages %}[{{ m['content'] }}]{% endfor %}<think>\n"


def given(engine: str, path: Path, prompt: Prompt) -> Rendered:
    """By llama.cpp, or by the hf engine's tokenizer without its process."""
    if engine == "hf":
        return hf_reply(path, prompt).rendered
    form = EngineOptions(prompt_form="chat" if prompt.messages else "text")
    return open_model(f"{engine}:{path}", form).render(prompt)


def hf_reply(path: Path, prompt: Prompt) -> RenderReply:
    tokenizer = load(
        TorchSettings(str(path), EngineOptions(device="cpu", dtype="float32"))
    ).tokenizer
    with contextlib.closing(TemplateProcess(template_of(tokenizer))) as process:
        return render_prompt(tokenizer, process.render, prompt)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("adds", [True, False])
def test_the_first_token_is_never_doubled(engine: str, adds: bool, tmp_path: Path) -> None:
    template = "{{ bos_token }}" + BODY
    path = write_small(tmp_path / "m.gguf", chat_template=template, add_bos_token=adds)
    for prompt in (CHAT, Prompt(text="<|im_start|>hello"), Prompt(text="hello")):
        tokens = given(engine, path, prompt).tokens
        spelt_out = bool(prompt.messages) or prompt.text.startswith("<|im_start|>")
        assert tokens.count(BOS) == (adds or spelt_out)
        assert (tokens[0] == BOS) == (adds or spelt_out)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("end", ["", "\n", " ", "  \n\n", "<|im_start|>assistant\n"])
def test_white_space_at_the_end_is_the_templates(engine: str, end: str, tmp_path: Path) -> None:
    path = write_small(tmp_path / "m.gguf", chat_template=BODY + "{{ '" + repr(end)[1:-1] + "' }}")
    found = given(engine, path, CHAT)
    assert found.text == f"[hello]{end}"
    assert "".join(found.pieces) == found.text
    text = Prompt(text=f"def f():\n{end}")
    assert given(engine, path, text).text == text.text


def test_all_engines_give_a_model_what_they_show(tmp_path: Path) -> None:
    path = write_small(tmp_path / "m.gguf", add_bos_token=True)
    for prompt in (CHAT, Prompt(text="<|im_start|>hello world\n    é 12")):
        form = EngineOptions(prompt_form="chat" if prompt.messages else "text")
        shown = [open_model(f"{engine}:{path}", form).render(prompt) for engine in ENGINES]
        assert shown[0].tokens == shown[1].tokens
        for engine in ENGINES:
            request = Request("t", 0, prompt, Decoding(max_tokens=1), 0)
            (made,) = open_model(f"{engine}:{path}", form).generate([request])
            assert made.error is None
            assert made.prompt_tokens == len(shown[0].tokens) == len(shown[0].pieces)


def test_a_template_that_refuses(tmp_path: Path) -> None:
    refusal = "{% if 'hello' in messages[0]['content'] %}{{ raise_exception('only haiku') }}"
    path = write_small(tmp_path / "m.gguf", chat_template=refusal + "{% endif %}" + BODY)
    assert "only haiku" in str(hf_reply(path, CHAT).error)
    with pytest.raises(ModelError, match="only haiku"):
        open_model(f"gguf:{path}").render(CHAT)


def thinker(path: Path, special: bool) -> Path:
    """A model that says its marks of thoughts often enough, as special tokens or as usual ones."""
    kind = 3 if special else 4
    return write_small(
        path,
        tokens=[*TOKENS, "<think>", "</think>"],
        types=[*TYPES, kind, kind],
        chat_template=THINKS,
    )


@pytest.mark.parametrize("special", [True, False])
def test_marks_of_thoughts_stay_in_the_text(special: bool, tmp_path: Path) -> None:
    path = thinker(tmp_path / "m.gguf", special)
    model = open_model(str(path))
    assert model.thinks
    hot = Decoding(max_tokens=200, temperature=3.0, top_k=0)
    made = list(model.generate([Request("t", i, CHAT, hot, i) for i in range(12)]))
    text = "".join(completion.text for completion in made)
    assert "<think>" in text
    assert "</think>" in text
    assert model.describe().to_json()["thinks"] is True
    loaded = load(TorchSettings(str(path), EngineOptions(device="cpu", dtype="float32")))
    texts = TextConverter(loaded, FakeLines([]), EngineOptions())  # type: ignore[arg-type]
    hello, (opened, closed) = TOKENS.index("hello"), range(len(TOKENS), len(TOKENS) + 2)
    (decoded,) = texts._decode([(BOS, opened, hello, closed, hello)])
    assert decoded == "<think>hello</think>hello"


def test_thinking_is_for_chats(tmp_path: Path) -> None:
    path = thinker(tmp_path / "m.gguf", special=True)
    for engine in ENGINES:
        assert not open_model(f"{engine}:{path}", EngineOptions(prompt_form="text")).thinks
    assert not open_model(str(write_small(tmp_path / "plain.gguf"))).thinks


@pytest.mark.parametrize(
    ("template", "thinks"),
    [
        ("{%- if '</think>' in content %}", True),
        ("{{- '<|start|>assistant<|channel|>analysis<|message|>' }}", True),
        ("[THINK]{{ thinking }}[/THINK]", True),
        (small_models.TEMPLATE, False),
        ("Think step by step.", False),
        ("", False),
    ],
)
def test_templates_tell_who_thinks(template: str, thinks: bool) -> None:
    assert (thought_tags(template) is not None) == thinks


def test_thoughts_get_more_tokens_and_that_is_recorded(
    assay: Cli, mini: Benchmark, tmp_path: Path
) -> None:
    path = thinker(tmp_path / "m.gguf", special=True)
    asked = ("eval", "mini", "--model", path, "--samples", 1, "--json")
    result = json.loads(assay(*asked).stdout)
    assert result["config"]["max_tokens"] == 16384
    assert result["environment"]["engine"]["thinks"] is True
    assert len(mini.problems) > 1
    chosen = json.loads(assay(*asked, "--max-tokens", 9).stdout)
    assert chosen["config"]["max_tokens"] == 9


@pytest.mark.parametrize("engine", ENGINES)
def test_a_prefill_follows_what_the_template_writes_before_answers(
    engine: str, tmp_path: Path
) -> None:
    """Not what it writes to ask for one: here they differ, as in DeepSeek's."""
    template = (
        "{% for m in messages %}{% if m['role'] == 'user' %}[{{ m['content'] }}]{% else %}"
        "Response:\n{{ m['content'] }}<|im_end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}Response:{% endif %}"
    )
    path = write_small(tmp_path / "m.gguf", chat_template=template)
    prefilled = Prompt(CHAT.messages, prefill="Below:\n```python\n")
    assert given(engine, path, CHAT).text == "[hello]Response:"
    rendered = given(engine, path, prefilled)
    assert rendered.text == "[hello]Response:\nBelow:\n```python\n"
    assert "".join(rendered.pieces).endswith("Below:\n```python\n")
