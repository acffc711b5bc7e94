"""Formats of a leaderboard: one file each, which registers itself."""
