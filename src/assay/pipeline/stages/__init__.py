"""Stages of a run, which happen next to the sandbox's workers, perhaps elsewhere, and its times."""
