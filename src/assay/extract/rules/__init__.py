"""Hold the rules that lead from a text to a program, one file per kind."""
