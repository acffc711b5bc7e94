"""Read and write the .apr format, version 2."""
