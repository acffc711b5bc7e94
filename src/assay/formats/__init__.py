"""Model files as data: read, write, convert and describe them."""
