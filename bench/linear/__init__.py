"""The parts of bench/linear.py.

`systems` lists what runs, `prepare` makes the files that all read, `measure` is the process of one system (`ours`,
`peers`), `choose` picks our settings on validation, `report` judges predictions and holds figures against the bars.
`measure`, `peers` and `systems` import nothing but numpy, scipy and the system itself: they run in its environment.
"""
