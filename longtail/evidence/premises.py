"""How far Gandalf's premise holds on each corpus, recorded in the results, and what xr-linear reaches there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from longtail.augment.premise import Premise, premise_of
from longtail.evidence.bench import Bench
from longtail.evidence.claim import SEEDS
from longtail.evidence.gandalf import COMPARED
from longtail.evidence.table import pools_of
from longtail.evidence.trials import trials_of
from longtail.report.figures import percent

METRICS = ("P@1", "P@5", "PSP@1", "PSP@5")


def record_premise(bench: Bench, name: str) -> None:
    """Measure the premise of a corpus once and put it into the results, where labels have texts."""
    corpus = bench.corpus(name)
    if corpus.digest not in bench.results.of(corpus.name).premise:
        found = premise_of(corpus)
        if found is not None and corpus.digest not in bench.results.of(corpus.name).premise:
            of = {"name": corpus.name, "digest": corpus.digest}
            record = {"kind": "premise", "id": corpus.digest, "corpus": of, **asdict(found)}
            bench.results.add(corpus.name, record)


def recorded_premise(bench: Bench, name: str) -> Premise | None:
    """The premise of a corpus as it is recorded."""
    recorded = bench.results.of(name)
    found = recorded.premise.get(str(recorded.digest))
    return None if found is None else Premise(found["texts"], found["given"], found["true"], found["known"])


def premise_table(bench: Bench, names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: the share of true co-labels of each corpus, then the figures of xr-linear for each arm."""
    columns = ["corpus", "label texts that are training texts", "true co-labels", "`augment`", *METRICS]
    rows = []
    for name in names:
        found = recorded_premise(bench, name)
        if found is None:
            continue
        first = [name, f"{found.texts:,}", "–" if found.share is None else percent(found.share)]
        for arm in COMPARED:
            trials = trials_of(name, str(bench.results.of(name).digest), [arm.system], SEEDS)
            pools = pools_of(bench, trials)
            if pools and len(pools[0].trials) == len(trials):
                settings = {key.removeprefix("augment."): value for key, value in arm.system.settings}
                method = " ".join([settings.pop("augment"), *(f"{key}={value}" for key, value in settings.items())])
                rows.append([*first, f"`{method}`", *(f"{pools[0].figure(metric):.1f}" for metric in METRICS)])
                first = ["", "", ""]
    return columns, rows
