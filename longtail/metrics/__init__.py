"""How good a ranking is: the field's metrics, P@k by label frequency, and paired comparisons of systems."""

from longtail.metrics.bootstrap import Comparison as Comparison
from longtail.metrics.bootstrap import Intervals as Intervals
from longtail.metrics.bootstrap import compare as compare
from longtail.metrics.bootstrap import intervals as intervals
from longtail.metrics.decisions import micro as micro
from longtail.metrics.decisions import micro_f1 as micro_f1
from longtail.metrics.evaluate import depth as depth
from longtail.metrics.evaluate import evaluate as evaluate
from longtail.metrics.frequency import FrequencyBin as FrequencyBin
from longtail.metrics.reliability import ReliabilityBin as ReliabilityBin
from longtail.metrics.reliability import ece as ece
from longtail.metrics.reliability import reliability as reliability
from longtail.metrics.report import Report as Report
