"""What to choose when: every recipe as one uses it, grouped by need, and what is recorded of it on three corpora.

Which system stands for a recipe follows a rule, not its test figures: the defaults of recipes that need no torch, the
small preset of networks. Cascades and dual encoders get label texts, by `augment=self` where they do not read them
themselves; AttentionXML and transformers do without, as in their papers, and xr-linear has a row for each. Where
several systems are named, the first that is recorded counts: a claim's arm, trained for a fixed number of steps, may
stand in for the preset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from longtail.core.errors import LongtailError
from longtail.evidence import duals, gandalf, transformers
from longtail.evidence.bench import Bench
from longtail.evidence.claim import SEEDS, Arm
from longtail.evidence.missing import bench_command
from longtail.evidence.table import SystemRuns, pools_of
from longtail.evidence.trials import System, trials_of

CORPORA = ("debian-related", "man-seealso", "eurlex57k-titles")
METRICS = ("P@1", "P@5", "PSP@1", "PSP@5")


@dataclass(frozen=True)
class Choice:
    """A recipe with the options one gives it, and its systems, best first; `corpora`: where it is measured."""

    title: str
    arms: tuple[Arm, ...]
    corpora: tuple[str, ...] = CORPORA

    @property
    def recipe(self) -> str:
        """The name of the recipe."""
        return self.arms[0].system.recipe


@dataclass(frozen=True)
class Need:
    """A group of the table: what one needs, and the choices for that; `family` is its colour in the picture."""

    says: str
    family: str
    choices: tuple[Choice, ...]


def _plain(name: str, preset: str | None = None, **settings: Any) -> Arm:
    return Arm(name, System.of(name, settings, preset))


def _linear(name: str, **settings: Any) -> Choice:
    return Choice(_title(name, **settings), (_plain(name, **settings),))


def _title(name: str, augment: str = "none", **_: Any) -> str:
    return name if augment == "none" else f"{name} + {augment}"


def _small(name: str, *arms: Arm, augment: str = "none", corpora: tuple[str, ...] = CORPORA) -> Choice:
    """A network's small preset; `arms` stand in for it."""
    given = {} if augment == "none" else {"augment": augment}
    return Choice(_title(name, augment), (_plain(name, "small", **given), *arms), corpora)


SELF = {arm.system.recipe: arm for arm in gandalf.SELF_TARGETS}
NEEDS: tuple[Need, ...] = (
    Need("No choice to make: the default", "default", (_linear("auto"),)),
    Need(
        "Seconds to minutes, no torch, texts of any length",
        "linear",
        (
            *map(_linear, ("popular", "neighbours", "xr-linear")),
            _linear("xr-linear", augment="self"),
            *map(_linear, ("parabel", "bonsai", "dismec")),
        ),
    ),
    Need(
        "Rare and new labels, and labels have texts: dual encoders",
        "dual encoder",
        (
            _small("unidec", duals.UNIDEC),
            _small("depsl", duals.DEPSL),
            _small("ngame", duals.NGAME),
            _small("siamesexml", duals.SIAMESE),
            _small("dpr", duals.DPR),
            _small("ance", duals.ANCE),
            _small("dexml", duals.DEXML),
            _small("renee", duals.RENEE_SELF, augment="self"),
        ),
    ),
    Need(
        "Short texts, fast networks: cascades",
        "cascade",
        (
            _small("astec", SELF["astec"], augment="self"),
            _small("decaf", gandalf.PLAIN["decaf"]),
            _small("eclare", gandalf.PLAIN["eclare"]),
            _small("inceptionxml", SELF["inceptionxml"], augment="self"),
            _small("inceptionxml-lf", gandalf.PLAIN["inceptionxml-lf"]),
            _small("attentionxml"),
        ),
    ),
    Need(
        "Longer texts, and time or a GPU: transformers",
        "transformer",
        (
            _small("lightxml", transformers.LIGHT, corpora=transformers.CASCADES),
            _small("cascadexml", transformers.CASCADE, corpora=transformers.CASCADES),
            _small("x-transformer", transformers.X, corpora=transformers.TITLES),
            _small("xr-transformer", transformers.XR, corpora=transformers.TITLES),
        ),
    ),
)


@dataclass(frozen=True)
class Measured:
    """What is recorded of a choice on a corpus: its figures in percent, seconds of training, memory in MB.

    In use: µs for one text alone, texts a second when many are asked at once, MB on disk. None: not recorded.
    """

    title: str
    family: str
    corpus: str
    scores: dict[str, float]
    seconds: float
    megabytes: float | None
    about: str  # the exact system
    one_text: float | None = None
    texts_a_second: float | None = None
    on_disk: float | None = None


def measured(bench: Bench, choice: Choice, family: str, corpus: str) -> Measured | None:
    """What is recorded of a choice on a corpus, averaged over seeds; None if nothing is."""
    pool = recorded_pool(bench, choice, corpus)
    if pool is None:
        return None
    scores = {metric: pool.figure(metric) for metric in METRICS}
    return Measured(
        choice.title,
        family,
        corpus,
        scores,
        pool.mean("seconds", "train") or 0.0,
        pool.mean("peak_mb"),
        str(pool.trials[0].system),
        pool.mean("p50_us"),
        rate(pool.mean("points"), pool.mean("seconds", "predict")),
        pool.mean("model_mb"),
    )


def rate(points: float | None, seconds: float | None) -> float | None:
    """Points a second."""
    return points / seconds if points and seconds else None


def recorded_pool(bench: Bench, choice: Choice, corpus: str) -> SystemRuns | None:
    """The runs of the first of its systems that is recorded."""
    digest = bench.results.of(corpus).digest
    if digest is None:
        return None
    for system in systems_on(choice, corpus):
        try:
            trials = trials_of(corpus, digest, [system], SEEDS)
        except LongtailError:  # a value or a package that is not there
            continue
        if pools := pools_of(bench, trials):
            return pools[0]
    return None


def systems_on(choice: Choice, corpus: str) -> Iterator[System]:
    """Its systems on a corpus, those that this version has; an arm without a number of steps for it is left out."""
    for arm in (arm.on(corpus) for arm in choice.arms):
        if arm is not None and arm.system.lacks is None:
            yield arm.system


def of_peers(bench: Bench, corpus: str) -> list[Measured]:
    """What is recorded of other projects on a corpus: of each system the newest line, in the order of recording.

    Where features were made before, their time is part of the training, as it is in our recipes.
    """
    recorded = bench.results.of(corpus)
    done = [
        line
        for line in recorded.peer.values()
        if line["status"] == "done" and recorded.digest in (None, line["corpus"].get("digest"))
    ]
    return [
        Measured(
            line["system"],
            "other project",
            corpus,
            {metric: line["scores"][metric] for metric in METRICS if metric in line["scores"]},
            line["seconds"]["train"] + line["seconds"].get("features", 0.0),
            line.get("peak_mb"),
            f"{line['peer']} {line.get('versions', {}).get(line['peer'], '')}".strip(),
            line.get("p50_us"),
            rate(line.get("points"), line["seconds"].get("predict")),
            line.get("model_mb"),
        )
        for line in {line["system"]: line for line in done}.values()
    ]


def unrecorded(bench: Bench, corpora: Sequence[str] = CORPORA, folder: str = "FOLDER") -> list[str]:
    """The commands that make the runs that the table lacks, corpus by corpus; a claim's arm where there is one."""
    return [
        bench_command(corpus, system, (0,), folder)
        for corpus in corpora
        for need in NEEDS
        for choice in need.choices
        if corpus in choice.corpora and recorded_pool(bench, choice, corpus) is None
        for system in list(systems_on(choice, corpus))[-1:]
    ]
