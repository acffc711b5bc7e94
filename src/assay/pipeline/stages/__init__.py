"""Stages of a run that happen next to the sandbox's workers, perhaps in other processes."""
