"""Call llama.cpp's C interface, as exported by the binding's library, for logits of every position.

The binding itself has only a server, which reports probabilities of what it generates. Parameters
are structures whose fields change between versions. Only the first ones are set here, which have
been the same for years, and their previous values are checked. A structure that is larger than the
library's is harmless: it is the last argument.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.models.engines.llamacpp.gguf_model import LlamaFacts, LlamaSettings
from assay.models.engines.llamacpp.llama_worker import wants_gpu
from assay.models.workers.engine_messages import Scoring
from assay.models.workers.lines import Lines, answer_question, logprobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


# Context: tokens, tokens per call, tokens per computation, sequences.
CONTEXT_DEFAULTS = (512, 2048, 512, 1)
MICRO_BATCH = 512
GPU_LAYERS_AT = 4  # in a model's parameters, counted in 32-bit numbers
ALL_LAYERS = 999
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_SILENCE = _LOG(lambda *_: None)  # silences llama.cpp; must live as long as the library


class _Parameters(ctypes.Structure):
    _fields_ = (("numbers", ctypes.c_int32 * 256),)


class _NativeBatch(ctypes.Structure):
    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


class NativeModel:
    """A loaded GGUF file."""

    def __init__(self, path: str, context: int, threads: int, *, use_gpu: bool) -> None:
        import xllamacpp

        self._lib = lib = _library(xllamacpp.xllamacpp.__file__)
        lib.llama_log_set(_SILENCE, None)
        lib.llama_backend_init()
        parameters = lib.llama_model_default_params()
        parameters.numbers[GPU_LAYERS_AT] = ALL_LAYERS if use_gpu else 0
        self._model = lib.llama_model_load_from_file(path.encode(), parameters)
        if not self._model:
            raise ValueError("llama.cpp cannot load the file")
        self._vocabulary = lib.llama_model_get_vocab(self._model)
        self.vocabulary_size = lib.llama_vocab_n_tokens(self._vocabulary)
        self.context = context
        self._context = self._new_context(context)
        self._batch = lib.llama_batch_init(context, 0, 1)
        lib.llama_set_n_threads(self._context, threads, threads)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Return the tokens of a text, with the token that the model expects at the start."""
        data = text.encode()
        room = (ctypes.c_int32 * (len(data) + 8))()
        count = self._lib.llama_tokenize(
            self._vocabulary, data, len(data), room, len(room), True, special
        )
        if count < 0:
            raise ValueError("the text cannot be split into tokens")
        return list(room[:count])

    def bytes_of(self, token: int) -> int:
        """Return the bytes of the text that a token stands for; none for special tokens."""
        room = ctypes.create_string_buffer(1024)
        piece = self._lib.llama_token_to_piece(self._vocabulary, token, room, len(room), 0, False)
        return max(0, int(piece))

    def logprobs(self, sequences: Sequence[Sequence[int]], last: int) -> list[list[float]]:
        return [
            logprobs_of(self.logits(tokens, last + 1)[:-1], tokens[-last:]) for tokens in sequences
        ]

    def logits(self, tokens: Sequence[int], last: int = 0) -> NDArray[np.float32]:
        """Return logits after each of the last tokens (0: all). The next call overwrites them."""
        last = last or len(tokens)
        lib, batch = self._lib, self._batch
        lib.llama_memory_clear(lib.llama_get_memory(self._context), True)
        batch.n_tokens = len(tokens)
        first = len(tokens) - last
        for place, token in enumerate(tokens):
            batch.token[place], batch.pos[place] = token, place
            batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
            batch.logits[place] = place >= first
        if (code := lib.llama_decode(self._context, batch)) != 0:
            raise ValueError(f"llama.cpp could not compute {len(tokens)} tokens (code {code})")
        rows = lib.llama_get_logits_ith(self._context, first)
        if not rows:
            raise ValueError("llama.cpp gives no logits for this model")
        return np.ctypeslib.as_array(rows, (last, self.vocabulary_size))

    def _new_context(self, length: int) -> int:
        lib = self._lib
        parameters = lib.llama_context_default_params()
        if tuple(parameters.numbers[:4]) != CONTEXT_DEFAULTS:
            raise ValueError(
                "this version of xllamacpp has different parameters. Install xllamacpp 2026.10."
            )
        parameters.numbers[:3] = [length, length, min(length, MICRO_BATCH)]
        context = lib.llama_init_from_model(self._model, parameters)
        if not context or lib.llama_n_ctx(context) < length or lib.llama_n_batch(context) < length:
            raise ValueError(f"llama.cpp could not allocate memory for {length} tokens")
        return int(context)


def _library(path: str) -> Any:
    lib = ctypes.CDLL(path)
    pointer, number, flag = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
    numbers = ctypes.POINTER(ctypes.c_int32)
    for name, result, *arguments in (
        ("llama_log_set", None, _LOG, pointer),
        ("llama_backend_init", None),
        ("llama_model_default_params", _Parameters),
        ("llama_context_default_params", _Parameters),
        ("llama_model_load_from_file", pointer, ctypes.c_char_p, _Parameters),
        ("llama_init_from_model", pointer, pointer, _Parameters),
        ("llama_n_ctx", ctypes.c_uint32, pointer),
        ("llama_n_batch", ctypes.c_uint32, pointer),
        ("llama_set_n_threads", None, pointer, number, number),
        ("llama_model_get_vocab", pointer, pointer),
        ("llama_vocab_n_tokens", number, pointer),
        ("llama_get_memory", pointer, pointer),
        ("llama_memory_clear", None, pointer, flag),
        (
            "llama_tokenize", number, pointer, ctypes.c_char_p, number, numbers, number, flag,
            flag,
        ),
        (
            "llama_token_to_piece", number, pointer, number, ctypes.c_char_p, number, number,
            flag,
        ),
        ("llama_batch_init", _NativeBatch, number, number, number),
        ("llama_decode", number, pointer, _NativeBatch),
        ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), pointer, number),
    ):  # fmt: skip
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def main() -> None:
    lines = Lines(LlamaSettings)
    settings, threads = lines.settings, lines.settings.options.threads
    with lines.ending_on(Exception):
        use_gpu = wants_gpu(settings.options.device)
        model = NativeModel(settings.path, settings.context, threads, use_gpu=use_gpu)
    facts = LlamaFacts(device="gpu" if use_gpu else "cpu", threads=threads)
    scoring = Scoring(context=model.context, at_once=1)
    lines.ready(facts, used_gpu=use_gpu, in_hand=0, scoring=scoring)
    while True:
        lines.reply(answer_question(model, lines.requests.get(), model.context))


if __name__ == "__main__":
    main()
