"""Judge programs. The code does not depend on where it runs."""
