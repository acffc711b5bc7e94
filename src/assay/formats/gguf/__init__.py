"""The GGUF format."""
