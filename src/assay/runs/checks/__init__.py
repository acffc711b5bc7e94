"""Compare what results files say with the counts and verdicts that they come from."""
