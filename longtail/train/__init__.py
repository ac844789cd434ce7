"""The one training loop of the torch engines."""
