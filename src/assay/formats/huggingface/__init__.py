"""Read and write folders in transformers' layout."""
