"""Check whether a model file is sound: stages from its first bytes to a generated text."""
