"""The parts of bench/linear.py.

`systems` lists what runs, `prepare` writes the files that all systems read, `choose` selects our settings on
validation, `report` evaluates predictions and compares figures with the targets. Each system is a process of its own,
run as by `longtail peers`, where the drivers of peers are (`longtail/evidence/peers`); `ours` is the driver of
longtail, `scikit` that of scikit-learn.
"""
