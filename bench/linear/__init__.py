"""The parts of bench/linear.py.

`systems` lists what runs, `prepare` writes the files that all systems read, `measure` is the process of one system
(`ours`, `peers`), `choose` selects our settings on validation, `report` evaluates predictions and compares figures with
the targets. `measure`, `peers` and `systems` only import numpy, scipy and the system: they run in its environment.
"""
