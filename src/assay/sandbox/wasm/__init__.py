"""Run programs as WebAssembly: the component, and the process that runs it."""
