"""The .apr format, version 2."""
