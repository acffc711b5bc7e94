"""Files beside runs: records of suites, figures of bench."""
