"""The questions of ``assay qa``: one file each, which registers itself."""
