"""Run the processes of a worker: keeper, zygote, program and oracle."""
