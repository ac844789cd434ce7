"""Search: from vectors to the k nearest."""
