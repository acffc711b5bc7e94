"""A prompt that does not fit is the model's failure; a completion that does not fit is not."""

from __future__ import annotations

import pytest

from assay.models import failed
from assay.models.model import is_too_long

PROMPT = [
    "the prompt has 600 tokens, the model's context 512",
    "The decoder prompt (length 3000) is longer than the maximum model length of 2048.",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 "
    "tokens. Please reduce the length of the messages.",
    "This model's maximum context length is 2048 tokens. However, you requested 3512 tokens (3000 "
    "in the messages, 512 in the completion).",
    "This model's maximum context length is 2,048 tokens. However, your request has 3,000 input "
    "tokens.",
    "400: context_length_exceeded",
    "request (5000 tokens) exceeds the available context size (4096 tokens)",
]
COMPLETION = [
    "This model's maximum context length is 4097 tokens. However, you requested 4196 tokens (100 "
    "in the messages, 4096 in the completion). (context_length_exceeded)",
    "This model's maximum context length is 4097 tokens, however you requested 4196 tokens (100 in "
    "your prompt; 4096 for the completion).",
    "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
    "length is 2048 tokens and your request has 100 input tokens (4096 > 2048 - 100).",
    "This endpoint's maximum context length is 4,096 tokens. However, you requested about 5,000 "
    "tokens (904 of text input, 4,096 in the output).",
]


@pytest.mark.parametrize("error", PROMPT)
def test_a_prompt_longer_than_the_context_is_an_answer(error: str) -> None:
    assert is_too_long(error)
    assert failed("t", 0, error).finish_reason == "prompt-too-long"


@pytest.mark.parametrize("error", COMPLETION)
def test_too_large_a_max_tokens_is_our_error(error: str) -> None:
    """As the model's failure, it would give 0 %, complete, with exit code 0."""
    assert not is_too_long(error)
    assert failed("t", 0, error).error == error
