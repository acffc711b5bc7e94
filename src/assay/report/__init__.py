"""Results in the formats that people and other tools read."""
