"""Nearest-neighbour search over dense and sparse vectors."""
