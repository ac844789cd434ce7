"""Evidence: scoring models on data sets, measuring systems, and checking what the papers claim."""
