"""Kinds of sandbox; each file is one."""
