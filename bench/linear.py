"""The linear engine against its peers: same matrices, same threads, one run.

    python bench/linear.py --corpus debian-related --peer pecos=PYTHON [--peer omikuji=PYTHON …] [--repeats 3]

Each system runs in a process of its own, the peers under the interpreter named (an environment that holds `libpecos`,
`omikuji` or `napkinxc`). Matrices are TF-IDF of words in at least two texts, made once by longtail and handed to all;
filter pairs are dropped from everybody's predictions. Runs alternate; medians are printed, and ratios to longtail's
xr-linear in the same run. "train" is tree and solving from CSR in memory; peers that train from files pay for these.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SYSTEMS = Path(__file__).parent / "linear_systems.py"
OURS = ("longtail tfn", "longtail tfn+man")
PEERS = {
    "pecos": ("pecos tfn", "pecos tfn+man"),
    "omikuji": ("omikuji parabel",),
    "napkinxc": ("napkinxc plt",),
}


def prepare(name: str, folder: Path) -> None:
    """Matrices of a corpus as .npz files."""
    import scipy.sparse as sp

    import longtail
    from longtail.encoders.tfidf import Tfidf, TfidfParameters

    corpus = longtail.read(name)
    encoder, counts = Tfidf.fit(corpus.train.texts, TfidfParameters(min_texts=2))
    matrices = {
        "X": encoder.weigh(counts),
        "Y": corpus.train.Y,
        "X_test": encoder.encode(corpus.test.texts),
        "Y_test": corpus.test.Y,
        "ignore": sp.csr_matrix(corpus.test.Y.shape) if corpus.test.ignore is None else corpus.test.ignore,
    }
    for key, matrix in matrices.items():
        sp.save_npz(folder / f"{key}.npz", sp.csr_matrix(matrix).astype("float32"), compressed=False)


def run(python: str, system: str, folder: Path, threads: int) -> dict[str, float]:
    command = [python, str(SYSTEMS), system, str(folder), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{system} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", help="default: debian-related")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help=", ".join(PEERS))
    parser.add_argument("--system", action="append", help="only these, as 'pecos tfn'; longtail tfn always runs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    pythons = dict.fromkeys(OURS, sys.executable)
    for peer in args.peer:
        name, _, python = peer.partition("=")
        pythons |= dict.fromkeys(PEERS[name], python)
    if args.system:
        pythons = {name: python for name, python in pythons.items() if name in ("longtail tfn", *args.system)}
    for corpus in args.corpus or ["debian-related"]:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            prepare(corpus, folder)
            found: dict[str, list[dict[str, float]]] = {system: [] for system in pythons}
            for _ in range(args.repeats):
                for system, python in pythons.items():
                    found[system].append(run(python, system, folder, args.threads))
            show(Path(corpus).name, found)


def show(corpus: str, found: dict[str, list[dict[str, float]]]) -> None:
    middle = {
        system: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for system, runs in found.items()
    }
    columns = list(next(iter(middle.values())))
    print(f"\n| {corpus} | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 1)}")
    for system, row in middle.items():
        print(f"| {system} | {' | '.join(f'{row[key]:,.2f}' for key in columns)} |")
    for system, row in middle.items():
        if not system.startswith("longtail"):
            ours = middle["longtail tfn+man" if system.endswith("man") else "longtail tfn"]
            faster = {"training": row["train s"] / ours["train s"], "batch": ours["docs/s"] / row["docs/s"]}
            faster |= {"single p50": row["p50 µs"] / ours["p50 µs"], "model": row["model MB"] / ours["model MB"]}
            told = ", ".join(f"{what} {ratio:.1f}×" for what, ratio in faster.items())
            told += "".join(f"; P@{k} {ours[f'P@{k}'] - row[f'P@{k}']:+.2f}" for k in (1, 3, 5))
            print(f"  longtail against {system}: {told}")


if __name__ == "__main__":
    main()
