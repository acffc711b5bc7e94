"""Register the formats of model files, one module each."""
