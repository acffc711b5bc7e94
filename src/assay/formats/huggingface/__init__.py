"""Folders as transformers saves them."""
