"""Contracts: obligations, tests, and what must fail them."""
