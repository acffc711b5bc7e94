"""Store what several runs share."""
