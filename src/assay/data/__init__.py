"""Read and write files and print text safely: bounded, cleaned, without following links."""
