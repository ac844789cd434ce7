"""Default values that Python functions, the command line and the scikit-learn wrapper share.

This module imports nothing, so that `longtail --help` can show the values without loading the library.
"""

RECIPE = "auto"
SEED = 0
DEVICE = "auto"
K = 5  # labels of a point, where neither the caller nor a cut-off says how many (core/how_many.py)
KS = (1, 3, 5)  # k of P@k and the other metrics
RESAMPLES = 10_000  # of a bootstrap
NEIGHBOURS = 10  # of a label in a label graph, as `longtail graph` shows them
HEADS = ("de", "clf", "both")  # values of the argument `head` of `Model.embed`
WRITTEN_AS = "jsonl"  # the format in which a corpus is written
