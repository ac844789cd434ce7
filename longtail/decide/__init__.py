"""Probabilities and cut-offs for any engine: fitted on points the model has not seen, applied by `Model.predict`."""

from longtail.decide.cutoff import Rule as Rule
from longtail.decide.fit import calibrate as calibrate
from longtail.decide.fit import decide_ranking as decide_ranking
from longtail.decide.fit import depth_for as depth_for
from longtail.decide.fit import fit_decision as fit_decision
