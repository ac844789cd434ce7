"""What the torch engines share: targets, label weights, levels, candidates and losses (spec: engine.md)."""
