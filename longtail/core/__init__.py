"""The basic types everything else uses: errors, texts, labels, rankings, models, recipes, runs."""
