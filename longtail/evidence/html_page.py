"""What the page of results as HTML shows, collected from the outcomes of claims and from recorded results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from longtail.evidence.bench import Bench
from longtail.evidence.choices import CORPORA, NEEDS, Measured, measured, of_peers
from longtail.evidence.filled import fill
from longtail.evidence.gandalf import GANDALF as ALL
from longtail.evidence.gandalf import TAIL, UNIFORM, D
from longtail.evidence.judge import over_corpora
from longtail.evidence.papers.tables import TABLES
from longtail.evidence.regions import choose_groups
from longtail.evidence.reproduce import Outcome, by_claim, verdict_table
from longtail.evidence.table import SystemRuns
from longtail.evidence.trials import System
from longtail.report.choose_table import choose_rows, use_rows
from longtail.report.quality_time import Dot
from longtail.report.result_charts import bin_chart, curve_chart, share_chart
from longtail.report.results import corpora_rows
from longtail.report.results_html import ResultsPage, results_html

SHOWN = ("P@1", "PSP@5")  # of quality against time
FAR_BELOW, CLOSE = 0.25, 0.02  # shares of the best: less is not drawn; the least width of the middle half


def html_page(bench: Bench, outcomes: Sequence[Outcome]) -> str:
    """The page, from the outcomes of all claims."""
    groups, needs = by_claim(outcomes), choose_groups(bench)
    return results_html(
        ResultsPage(
            verdicts=verdict_table(outcomes),
            choose=choose_rows(needs, CORPORA),
            use=use_rows(needs, CORPORA),
            dots=quality_dots(bench),
            charts=[bins_of(groups), shares_of(outcomes), curves_of(groups)],
            tables=[fill(bench, table) for table in TABLES],
            runs=corpora_rows(outcomes),
            by_claim={own[0].claim.id: over_corpora(outcome.verdict for outcome in own) for own in groups},
        )
    )


def quality_dots(bench: Bench) -> list[tuple[str, list[tuple[str, list[Dot]]]]]:
    """For each corpus and metric the recipes and other projects as dots; corpora without any are left out."""
    charts = []
    for corpus in CORPORA:
        found = [measured(bench, choice, need.family, corpus) for need in NEEDS for choice in need.choices]
        every = [one for one in (*found, *of_peers(bench, corpus)) if one is not None]
        drawn = [(metric, dots) for metric in SHOWN if (dots := dots_of(every, metric))]
        if drawn:
            charts.append((corpus, drawn))
    return charts


def dots_of(found: Iterable[Measured], metric: str) -> list[Dot]:
    """The dots of those that have the metric, without those far below the best."""
    dots = [
        Dot(one.title, one.family, one.seconds, one.scores[metric], one.about) for one in found if metric in one.scores
    ]
    least = least_shown([dot.value for dot in dots])
    return [dot for dot in dots if dot.value >= least]


def least_shown(values: Sequence[float]) -> float:
    """What a value must reach to be drawn: a quarter of the best, and no outlier by Tukey's outer fence."""
    if not values:
        return 0.0
    best, (low, high) = max(values), np.quantile(values, (0.25, 0.75))
    return max(FAR_BELOW * best, float(low - 3 * max(high - low, CLOSE * best)))


def bins_of(groups: Sequence[Sequence[Outcome]]) -> tuple[str, str, str, list[str]]:
    """G12: what each bin of label frequency contributes to P@5, system by system."""
    figures = []
    for outcome in (outcome for own in groups if own[0].claim.id == "G12" for outcome in own):
        for part in outcome.claim.parts:
            after, before = part.arms
            if after.system in outcome.pools and before.system in outcome.pools:
                series = [(arm.title, outcome.pools[arm.system]) for arm in (before, after)]
                figures.append(bin_chart(f"{before.title} on {outcome.corpus}", series))
    remark = (
        "Five bins of labels with about as many training examples each, from head to tail, and what they contribute to "
        "P@5, with Gandalf and without it (claim G12; thesis, Figure 1.3). The last bars are those labels of the fifth "
        "bin that have no training example."
    )
    return "bins", "By label frequency", remark, figures


def shares_of(outcomes: Sequence[Outcome]) -> tuple[str, str, str, list[str]]:
    """G13: P@1 and PSP@5 against the share of label texts that become training points."""
    pools: dict[str, dict[System, SystemRuns]] = {}
    for outcome in outcomes:
        pools.setdefault(outcome.corpus, {}).update(outcome.pools)
    figures = []
    for corpus, own in pools.items():
        lines = []
        for name, arms in (("uniform", UNIFORM), ("tail first", TAIL)):
            steps = zip((0, 25, 50, 75, 100), (D, *arms, ALL), strict=True)
            points = [(share, own[arm.system]) for share, arm in steps if arm.system in own]
            if len(points) > 1:
                lines.append((name, points))
        for metric in SHOWN if lines else ():
            drawn = [(name, [(share, pool.figure(metric)) for share, pool in points]) for name, points in lines]
            figures.append(share_chart(corpus, metric, drawn))
    remark = "Label texts drawn uniformly, or those of rare labels first (claim G13, xr-linear; thesis, Figure 1.4)."
    return "shares", "Share of label texts", remark, figures


def curves_of(groups: Sequence[Sequence[Outcome]]) -> tuple[str, str, str, list[str]]:
    """G14: scores on the validation part after each epoch."""
    figures = [
        curve_chart(outcome.corpus, metric, part.curves)
        for own in groups
        for outcome in own
        for part in outcome.parts
        if part.curves
        for metric in part.part.metrics
    ]
    remark = "InceptionXML with Gandalf and without it (claim G14; Gandalf paper, Figure 5)."
    return "curves", "Curves", remark, figures
