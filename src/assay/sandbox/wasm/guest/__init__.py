"""What is built into the WebAssembly component: it never runs in the harness."""
