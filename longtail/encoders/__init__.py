"""Encoders: from texts to features."""
