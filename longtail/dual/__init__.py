"""The dual engine: texts and label texts through one encoder, with or without a table of classifiers."""
