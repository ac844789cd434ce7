"""The cascade engine: an encoder with classifiers from few clusters to all labels (spec: cascade.md, engine.md)."""
