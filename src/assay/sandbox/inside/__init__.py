"""What runs in the sandbox's own interpreter: imports only the standard library and siblings."""
