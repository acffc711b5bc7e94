"""Whether a model file is sound: stages from its first bytes to a text that it makes."""
