"""The nouns everything else is built from: errors, texts, labels, rankings, models, recipes, runs."""
