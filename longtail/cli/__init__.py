"""The command line: one file per command, each with `add` (its options) and `run`."""
