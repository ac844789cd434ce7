"""The result tables of the papers: their rows as systems of longtail, their corpora and metrics, their figures."""
