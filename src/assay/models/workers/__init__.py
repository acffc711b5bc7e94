"""What engines share that run in processes of their own."""
