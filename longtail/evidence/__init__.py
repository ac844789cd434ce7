"""Evidence: how good a model is on a data set, and against another."""
