"""Shared parts of the readers: lines, JSON, CSV, Arrow, sparse text, labels, and the builder of points."""
