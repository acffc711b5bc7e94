"""Render results for people and for other tools."""
