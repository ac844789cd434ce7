"""What runs inside the environment of a peer: `measure` is the process, every other file drives one peer.

Nothing here imports longtail: only the standard library, numpy, scipy and the peer are there.
"""
