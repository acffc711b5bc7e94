"""Share code between engines that run in their own processes."""
