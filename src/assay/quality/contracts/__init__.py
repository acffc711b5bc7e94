"""Check contracts: obligations, tests, and subjects that must fail them."""
