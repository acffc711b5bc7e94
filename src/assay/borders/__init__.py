"""What crosses the border to files, servers and terminals: bounded, cleaned, following no links."""
