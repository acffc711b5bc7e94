"""Show what commands measured of a model."""
