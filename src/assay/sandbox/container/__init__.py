"""Workers in containers of Docker or podman."""
