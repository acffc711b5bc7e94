"""Check that the sizes in a model's configuration can be those of its weights.

transformers builds the model of a configuration before it looks at the weights, even with a billion
layers or a vocabulary of a terabyte.
"""

from __future__ import annotations

from assay.errors import ModelError
from assay.formats.config import ModelConfig

# By the names that configurations have for them.
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
OTHER = ("vocab_size", "intermediate_size", "n_inner", "ffn_dim", "max_position_embeddings")
PARAMETERS_PER_BYTE = 8  # no weights take less than a bit each
LEAST_BYTES = 1 << 26  # smaller models are harmless; the engine reports their damaged weights
MOST_LAYERS = 10_000
MOST_POSITIONS = 1 << 40  # computed, not stored, in most models
NESTED = ("text_config",)


def check_sizes(config: ModelConfig, weight_bytes: int, where: object) -> None:
    """Raise ModelError, naming ``where``, if the weights cannot have so many parameters."""
    most = max(weight_bytes, LEAST_BYTES) * PARAMETERS_PER_BYTE
    hidden = max((_size(config, name, where) for name in HIDDEN), default=1) or 1
    for name in LAYERS:
        layers = _size(config, name, where)
        if layers > MOST_LAYERS or layers * hidden > most:
            raise _impossible(where, name, layers)
    for name in OTHER:
        size = _size(config, name, where)
        stored = name != "max_position_embeddings"
        if (stored and size * hidden > most) or size > MOST_POSITIONS:
            raise _impossible(where, name, size)
    if hidden > most:
        raise _impossible(where, "the hidden size", hidden)
    for name in NESTED:
        if isinstance(inner := config.content.get(name), dict):
            check_sizes(ModelConfig(inner), weight_bytes, where)


def _size(config: ModelConfig, name: str, where: object) -> int:
    """Return a size, 0 if it is not given. Some are null, or a list with one for each layer."""
    value = config.content.get(name)
    if value is None or isinstance(value, list):
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _impossible(where, name, value)
    return value


def _impossible(where: object, name: str, value: object) -> ModelError:
    return ModelError(
        f"{where}: {name} is {str(value)[:40]}, which does not fit its weights. Download it again."
    )
