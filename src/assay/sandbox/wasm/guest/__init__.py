"""Hold the code that is built into the WebAssembly component. The harness never runs it."""
