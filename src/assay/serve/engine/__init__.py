"""Judge the programs of all requests: the queue, the stage that judges, and its messages."""
