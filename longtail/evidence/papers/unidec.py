"""The tables of chapter 2 of the thesis (UniDEC and DePSL)."""

from __future__ import annotations

from longtail.evidence.claim import Arm
from longtail.evidence.duals import (
    ANCE,
    CLF,
    DE,
    DEPSL,
    DEXML,
    DPR,
    NGAME,
    NGAME_ENCODER,
    NOT_MINED,
    ONE_WAY,
    ONLY_BCE,
    RENEE_SELF,
    SIAMESE_BAG,
    SUPCON,
    UNIDEC,
    WITH_BCE,
)
from longtail.evidence.papers.table import ENDS, GIGABYTES, HOURS, PSP, P, PaperTable, Row, like
from longtail.evidence.trials import System

A131, A1300, WIKI = "LF-AmazonTitles-131K", "LF-AmazonTitles-1.3M", "LF-WikiTitles-500K"
SEE_ALSO = "LF-WikiSeeAlsoTitles-320K"
LONG_A131, LONG_SEE_ALSO, LONG_WIKI = "LF-Amazon-131K", "LF-WikiSeeAlso-320K", "LF-Wikipedia-500K"
TITLES = {"debian-related": A131, "man-seealso": SEE_ALSO}
LONG = {"debian-related": LONG_A131, "man-seealso": LONG_SEE_ALSO}
LARGE = {"debian-related": A1300, "man-seealso": WIKI}


def _source(number: str) -> str:
    return f"Kharbanda 2024 (thesis), chapter 2, Table {number}"


def heads(title: str, arm: Arm, here: tuple[Arm | None, Arm | None] = (None, None)) -> tuple[Row, Row, Row]:
    """Three rows: a UniDEC, its DE head and its CLF head alone."""
    both = like(title, arm)
    assert both.paper is not None
    heads = [System("unidec", (*both.paper.settings, ("share", share))) for share in (0.0, 1.0)]
    return both, Row(f"{title}, DE", heads[0], here[0]), Row(f"{title}, CLF", heads[1], here[1])


T2_2 = PaperTable(
    "001-T2.2",
    _source("2.2"),
    "dual encoders and classifiers",
    (*P, *PSP),
    (
        like("DPR", DPR),
        like("ANCE", ANCE),
        Row("GraphSAGE"),
        like("NGAME (Φ)", NGAME_ENCODER),
        like("DePSL (Φ)", DEPSL),
        like("SiameseXML", SIAMESE_BAG),
        like("NGAME (Ψ)", NGAME),
        Row("CascadeXML", System("cascadexml")),
        like("UniDEC", UNIDEC),
    ),
    {
        A131: """
            41.85 28.71 20.88 38.17 43.93 49.45
            42.67 29.05 20.98 38.16 43.78 49.03
                -     -     -     -     -     -
            42.61 28.86 20.69 38.27 43.75 48.71
            42.34 28.98 20.87 37.61 43.01 47.93
            41.42 30.19 21.21 35.80 40.96 46.19
            44.95 29.87 21.20 38.25 43.75 48.42
                -     -     -     -     -     -
            44.35 29.49 21.03 39.23 44.13 48.90
        """,
        SEE_ALSO: """
                -     -     -     -     -     -
                -     -     -     -     -     -
            27.19 15.66 11.30 22.35 19.31 19.15
            30.79 20.34 15.36 25.14 26.77 28.73
            33.91 21.92 16.48 24.22 25.80 27.99
                -     -     -     -     -     -
            32.64 22.00 16.60 24.41 27.37 29.87
            23.39 15.71 12.06 12.68 15.37 17.63
            36.28 23.23 17.31 26.31 27.81 29.90
        """,
        A1300: """
            44.64 39.05 34.83 32.62 35.37 36.72
            46.44 41.48 37.59 31.91 35.31 37.25
                -     -     -     -     -     -
            45.82 39.94 35.48 33.03 35.63 36.80
            54.20 48.20 43.38 30.17 34.11 36.25
            49.02 42.72 38.52 27.12 30.43 32.52
            54.69 47.76 42.80 28.23 32.26 34.48
                -     -     -     -     -     -
            57.41 50.75 45.89 30.10 34.32 36.78
        """,
        WIKI: """
                -     -     -     -     -     -
                -     -     -     -     -     -
            27.30 17.17 12.96 21.56 21.84 23.50
            29.68 18.06 12.51 23.18 22.08 21.18
            49.66 27.93 19.62 27.44 25.64 24.94
                -     -     -     -     -     -
            39.04 23.10 16.08 23.12 23.31 23.03
            47.29 26.77 19.00 19.19 19.47 19.75
            50.22 28.76 20.32 25.90 25.20 24.85
        """,
        LONG_A131: """
                -     -     -     -     -     -
                -     -     -     -     -     -
                -     -     -     -     -     -
            42.61 28.86 20.69 38.27 43.75 48.71
            45.86 30.52 21.89 38.19 44.07 49.56
            44.81     - 21.94 37.56 43.69 49.75
            46.95 30.95 22.03 38.67 44.85 50.12
                -     -     -     -     -     -
            47.80 32.29 23.35 40.28 47.03 53.24
        """,
        LONG_SEE_ALSO: """
                -     -     -     -     -     -
                -     -     -     -     -     -
                -     -     -     -     -     -
            43.58 28.01 20.86 30.59 33.29 36.03
            44.83 29.07 21.66 30.67 33.56 36.41
            42.16     - 21.35 29.01 32.68 36.03
            45.74 29.61 22.07 30.38 33.89 36.95
                -     -     -     -     -     -
            47.69 30.74 22.81 35.45 38.02 40.71
        """,
    },
    TITLES,
    ("U7",),
    "Φ: label texts alone; Ψ: with classifiers. The paper's NGAME (Φ) on LF-Amazon-131K is that of "
    "LF-AmazonTitles-131K.",
)

T2_3 = PaperTable(
    "001-T2.3",
    _source("2.3"),
    "a pool of labels, or all of them",
    (*ENDS, GIGABYTES, HOURS),
    (
        Row("DEXML, small pool"),
        Row("DEXML, larger pool"),
        like("DePSL", DEPSL),
        like("DEXML, all labels", DEXML),
        like("Renee, all labels", RENEE_SELF),
        like("UniDEC", UNIDEC),
    ),
    {
        LONG_A131: """
                -     -     -     -     -     -
                -     -     -     -     -     -
                -     -     -     -     -     -
                -     -     -     -     -     -
            48.05 23.26 39.32 53.51   128    58
            47.80 23.35 40.28 53.24    48    24
        """,
        LONG_SEE_ALSO: """
                -     -     -     -     -     -
                -     -     -     -     -     -
                -     -     -     -     -     -
                -     -     -     -     -     -
            47.70 23.82 31.13 40.37   128    81
            47.69 22.81 35.45 40.71    48    39
        """,
        A1300: """
            42.15 32.97     -     -   160     -
            54.01 42.08 28.64 33.58   320     -
            54.20 43.38 30.17 36.25    48    53
            58.40 45.46 31.36 36.58   640    66
            56.04 45.32 28.56 36.14   256   105
            57.41 45.89 30.10 36.78    48    78
        """,
        LONG_WIKI: """
            77.71 43.32     -     -    80     -
            84.77 50.31     -     -   160     -
            85.20 49.88 45.96 59.31    48    55
            85.78 50.53 46.27 58.97   320    39
            84.95 51.68 39.89 56.70   320    39
                -     -     -     -     -     -
        """,
    },
    LONG,
    ("U8",),
    "In the paper, memory is that of the GPUs; here it is the peak of the process. Hours are on different hardware: "
    "GPUs there, one or two threads of a CPU here. Renee is trained with the label texts as points (self).",
)

T2_4 = PaperTable(
    "001-T2.4",
    _source("2.4"),
    "losses of the two heads of UniDEC",
    ENDS,
    (
        Row("SupCon | SupCon"),
        Row("SupCon | SupCon, DE"),
        Row("SupCon | SupCon, CLF"),
        Row("SupCon | SupCon + BCE"),
        Row("SupCon | SupCon + BCE, DE"),
        Row("SupCon | SupCon + BCE, CLF"),
        *heads("decoupled | BCE", ONLY_BCE),
        *heads("decoupled | decoupled", UNIDEC, (DE, CLF)),
        *heads("decoupled | decoupled + BCE", WITH_BCE),
    ),
    {
        A1300: """
            53.41 43.57 32.54 38.20
            49.35 39.23 27.78 32.86
            46.90 38.62 31.23 35.28
            54.86 44.61 28.05 35.05
            51.08 40.78 28.64 34.00
            53.48 42.76 26.24 32.81
            55.12 44.80 31.72 37.28
            50.83 40.61 27.14 33.66
            54.69 42.81 30.74 36.48
            56.73 45.19 34.03 39.54
            52.52 42.02 29.78 35.06
            43.67 36.85 32.68 37.07
            57.41 45.89 30.10 36.78
            52.51 42.00 29.82 35.08
            55.56 44.10 29.15 35.49
        """,
        WIKI: """
            48.38 19.89 26.26 24.78
            48.63 19.30 27.21 24.52
            29.48 14.21 18.97 18.82
            49.68 20.15 25.29 24.67
            47.07 18.88 27.47 24.53
            45.07 17.96 19.01 19.68
            48.65 19.58 26.15 24.37
            47.70 18.59 26.84 24.19
            43.27 16.55 19.41 18.29
            48.97 19.82 27.08 24.89
            49.20 19.30 27.36 24.49
            30.27 13.74 18.95 17.75
            50.22 20.32 25.90 24.85
            49.16 19.33 27.35 24.54
            44.66 17.38 20.56 19.62
        """,
    },
    LARGE,
    ("U3", "U4", "U11"),
    "Loss of DE | loss of CLF; rows marked DE and CLF search in one head alone. UniDEC with SupCon is not in longtail.",
)

T2_5 = PaperTable(
    "001-T2.5",
    _source("2.5"),
    "UniDEC's heads, and mined negatives",
    (*P, *PSP),
    (*heads("UniDEC", UNIDEC, (DE, CLF)), *heads("without hard negatives", NOT_MINED)),
    {
        LONG_A131: """
            47.80 32.29 23.35 40.28 47.03 53.24
            45.24 30.32 21.97 37.85 43.92 49.90
            47.83 32.31 23.32 40.56 47.17 53.21
            47.45 31.49 22.53 41.28 46.93 52.40
            45.45 30.29 21.79 38.15 43.97 49.53
            43.77 28.30 19.90 39.80 43.64 47.78
        """,
        LONG_SEE_ALSO: """
            47.69 30.74 22.81 35.45 38.02 40.71
            44.65 28.84 21.53 30.54 33.30 36.20
            42.04 25.89 18.89 33.63 34.07 35.60
            46.74 30.04 22.27 35.85 38.10 40.97
            43.07 27.67 20.69 30.52 32.81 35.55
            41.05 25.47 18.80 33.52 34.01 35.82
        """,
        A1300: """
            57.41 50.75 45.89 30.10 34.32 36.78
            52.51 46.66 42.00 29.82 33.21 35.08
            55.56 48.77 44.10 29.15 33.15 35.49
            56.51 49.77 44.94 31.90 35.89 38.21
            49.71 43.87 39.37 30.40 33.49 35.20
            53.31 47.21 42.90 30.41 34.19 36.47
        """,
        WIKI: """
            50.22 28.76 20.32 25.90 25.20 24.85
            49.16 27.51 19.33 27.35 25.24 24.54
            44.66 24.81 17.38 20.56 19.86 19.62
            49.84 28.31 19.95 26.41 25.44 24.99
            46.87 25.60 17.83 27.38 24.64 23.81
            44.20 24.83 17.48 21.33 20.60 20.42
        """,
    },
    LONG,
    ("U1", "U2"),
)

T2_6 = PaperTable(
    "001-T2.6",
    _source("2.6"),
    "the loss in one direction and in both",
    (*P, *PSP),
    (
        Row("SupCon, one way", System.of("depsl", {"loss": "supcon", "forth": 1.0})),
        like("SupCon, both ways", SUPCON),
        like("decoupled, one way", ONE_WAY),
        like("decoupled, both ways", DEPSL),
    ),
    {
        LONG_A131: """
            44.41 29.84 21.63 36.89 43.00 48.90
            45.03 30.24 21.93 37.66 43.81 49.78
            45.86 30.52 21.89 38.19 44.07 49.56
            45.79 30.60 21.95 38.43 44.42 49.92
        """,
        LONG_SEE_ALSO: """
            43.79 28.31 21.08 29.47 32.15 34.89
            44.32 28.84 21.57 30.16 33.14 36.11
            44.73 28.78 21.43 30.18 32.79 35.58
            44.83 29.07 21.66 30.67 33.56 36.41
        """,
        A1300: """
            52.22 46.45 41.80 29.15 32.90 34.91
            50.62 45.09 40.64 30.51 34.30 36.33
            54.20 48.20 43.38 30.17 34.11 36.25
            53.26 47.55 42.86 31.90 35.80 37.88
        """,
        WIKI: """
            48.30 27.33 19.26 27.00 25.12 24.51
            47.33 26.79 18.94 27.41 25.21 24.63
            49.66 27.93 19.62 27.44 25.64 24.94
            48.87 27.47 19.35 28.09 25.77 25.08
        """,
    },
    LARGE,
    ("U3", "U5"),
    "All rows are DePSL.",
)

TABLES = (T2_2, T2_3, T2_4, T2_5, T2_6)
