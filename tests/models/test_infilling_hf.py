"""Hugging Face models fill in code: tokens, ends, and white space of real tokenizers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.models.options import EngineOptions
from assay.types import Decoding

pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
from assay.errors import ModelError
from assay.formats.marks import FORMS, Gap, GapTokens, find_gap
from assay.models import Model, check_infilling, open_model
from assay.models.engines.torch.load import load
from assay.models.engines.torch.texts import TextConverter, TokenAsk
from assay.models.engines.torch.torch_model import TorchSettings
from assay.models.workers.engine_messages import Reply
from assay.models.workers.prompt_tokens import encode_inner, prompt_tokens
from assay.types import Prompt
from tests.formats.gap_models import CODELLAMA, QWEN
from tests.formats.test_gaps import GAP, PREFIX, SUFFIX, complete
from tests.models.test_hf import FakeLines
from tests.models.torch_models import save_model

pytestmark = pytest.mark.torch
TOKENS = 8


def save_gap_model(folder: Path, form: GapTokens = QWEN) -> Path:
    """A small model of bytes whose tokenizer has three more special tokens."""
    from transformers import AutoTokenizer

    save_model(folder, vocab_size=280)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": list(form)})
    tokenizer.save_pretrained(folder)
    return folder


def metaspace_tokenizer() -> Any:
    """SentencePiece's way: a space before every text, and spaces as letters."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = ["▁", *sorted(set(f"{PREFIX}{SUFFIX}☺abcdefghijklmnopqrstuvwxyz"))]
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<s>", "</s>", *CODELLAMA)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def gap_in(tokenizer: Any) -> Gap:
    found = find_gap(tokenizer.get_vocab())
    assert found is not None
    return found


def ids_of(tokenizer: Any, tokens: list[int]) -> list[str]:
    return [tokenizer.convert_ids_to_tokens(token) for token in tokens]


@pytest.mark.parametrize("form", FORMS)
def test_the_engine_gives_the_model_its_tokens(form: GapTokens, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(save_gap_model(tmp_path / "m", form))
    gap = gap_in(tokenizer)
    found = prompt_tokens(tokenizer, lambda _: "", GAP, gap)
    spelt_out = tokenizer.encode(form.mark(PREFIX, SUFFIX), add_special_tokens=False)
    assert found == spelt_out
    assert [found[0], found[-1]] == [gap.ids[0], gap.ids[2]]


def test_the_real_engine_generates_what_transformers_does(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = save_gap_model(tmp_path / "m")
    model = open_model(str(folder))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert check_infilling(model).endswith("<|fim_prefix|> <|fim_suffix|> <|fim_middle|>")
    with model.keep_loaded():
        rendered = model.render(GAP)
        assert rendered.text == QWEN.mark(PREFIX, SUFFIX)
        (text,) = complete(model, max_tokens=TOKENS)
        ids = torch.tensor([list(rendered.tokens)])
        made = (
            AutoModelForCausalLM.from_pretrained(folder)
            .generate(ids, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0)[
                0, ids.shape[1] :
            ]
            .tolist()
        )
        assert text == tokenizer.decode(made, skip_special_tokens=True)
        # The third token stands for a mark after the middle.
        end = made[2]
        model.__dict__["gap"] = replace(_gap(model), ends=(end,))
        (cut,) = complete(model, max_tokens=TOKENS)
    first = made.index(end)
    assert cut == tokenizer.decode(made[:first], skip_special_tokens=True)


def _gap(model: Model) -> Gap:
    found: Gap = model.gap  # type: ignore[attr-defined]
    return found


def test_a_folder_without_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has no fill-in-the-middle tokens"):
        check_infilling(open_model(str(save_model(tmp_path / "m"))))


def test_a_suffix_gets_no_space_from_sentencepiece() -> None:
    """As CodeLlama's own code: '<PRE> P <SUF>S <MID>', a space before the prefix alone."""
    tokenizer = metaspace_tokenizer()
    tokens = ids_of(tokenizer, prompt_tokens(tokenizer, lambda _: "", GAP, gap_in(tokenizer)))
    at = tokens.index(CODELLAMA.suffix)
    assert tokens[:3] == [CODELLAMA.prefix, "▁", "d"]
    assert "".join(tokens[at + 1 : -1]).replace("▁", " ") == SUFFIX
    assert tokens[-1] == CODELLAMA.middle
    spaced = Prompt(text=PREFIX, suffix="  x\n")
    tokens = ids_of(tokenizer, prompt_tokens(tokenizer, lambda _: "", spaced, gap_in(tokenizer)))
    assert tokens[-5:] == ["▁", "▁", "x", "\n", CODELLAMA.middle]


def test_indentation_survives_a_tokenizer_that_drops_first_spaces(tmp_path: Path) -> None:
    """The engine decodes what follows the middle's mark after a visible token of the prompt."""
    tokenizer = metaspace_tokenizer()
    gap = gap_in(tokenizer)
    middle = encode_inner(lambda text: tokenizer.encode(text, add_special_tokens=False), "    xa")
    assert tokenizer.decode(middle) == "   xa"
    folder = save_model(tmp_path / "m", vocab_size=80)
    for old in folder.glob("*token*"):
        old.unlink()
    tokenizer.save_pretrained(folder)
    reply = answer_of(folder, gap, [*middle, gap.ends[0], *middle])
    assert (reply.text, reply.finish_reason, reply.tokens_generated) == ("    xa", "stop", 7)


def answer_of(folder: Path, gap: Gap, tokens: list[int]) -> Reply:
    """Return the reply of the engine's own conversion for these generated tokens."""
    loaded = load(TorchSettings(str(folder), EngineOptions(device="cpu", dtype="float32")))
    lines = FakeLines([])
    texts = TextConverter(loaded, lines, EngineOptions())  # type: ignore[arg-type]
    prompt = prompt_tokens(loaded.tokenizer, lambda _: "", GAP, gap)
    wish = Decoding(len(tokens))
    texts.start()
    texts.finish(TokenAsk(1, tuple(prompt), wish, (), ends=frozenset(gap.ends)), tokens, None)
    return lines.replies.get(timeout=30)
