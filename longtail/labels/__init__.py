"""Structures over the label space."""
