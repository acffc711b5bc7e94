"""Hold the questions of ``assay qa``. Each file registers one."""
