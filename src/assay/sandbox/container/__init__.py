"""Run workers in containers of Docker or podman."""
