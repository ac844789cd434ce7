"""The linear engine: sparse one-vs-all classifiers over a label tree, in C++."""
