"""Speed of reading, compared with a plain JSON parser on the same lines in the same run.

    python bench/read.py [FOLDER …]      # folders of JSON lines; default: the bundled corpus

Prints for each folder, unpacked to plain files: the time of `longtail.read`, of plain `orjson.loads` on the same lines,
their ratio (median of alternating runs), the peak memory of a reading process compared with the size of the result, and
the time to reopen the corpus in the native format.
"""

from __future__ import annotations

import gzip
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

import longtail
from longtail.data.read import locate

REPEATS = 5


def unpack(folder: Path, target: Path) -> None:
    for path in folder.iterdir():
        if path.suffix == ".gz":
            with gzip.open(path) as packed, (target / path.stem).open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        elif path.is_file():
            shutil.copy(path, target)


def bare(folder: Path) -> float:
    began = time.perf_counter()
    for path in folder.glob("*.jsonl"):
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
    return time.perf_counter() - began


def ours(folder: Path) -> float:
    began = time.perf_counter()
    longtail.read(folder)
    return time.perf_counter() - began


def held(corpus: longtail.Corpus) -> int:
    """Return the bytes of the arrays of a corpus."""
    total = corpus.labels.keys.data.nbytes + corpus.labels.keys.offsets.nbytes
    if corpus.labels.texts is not None:
        total += corpus.labels.texts.data.nbytes + corpus.labels.texts.offsets.nbytes
    for _, data in corpus.parts():
        for texts in (data.texts, data.groups):
            total += 0 if texts is None else texts.data.nbytes + texts.offsets.nbytes
        for matrix in (data.Y, data.ignore):
            total += 0 if matrix is None else matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return total


def peak_memory() -> int:
    """Return the peak resident memory in bytes, from Linux itself: getrusage would include the parent's."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def memory(folder: Path) -> None:
    """In its own process: the peak resident memory that reading added, and the size of the result."""
    longtail.write  # noqa: B018  # triggers the imports that any reading needs
    before = peak_memory()
    corpus = longtail.read(folder)
    print(f"{(peak_memory() - before) / 1e6:.0f} {held(corpus) / 1e6:.0f}")


def main(folders: list[str]) -> None:
    for name in folders or ["debian-related"]:
        with tempfile.TemporaryDirectory() as place:
            plain, native = Path(place) / "plain", Path(place) / "native"
            plain.mkdir()
            unpack(locate(name), plain)
            times = [(ours(plain), bare(plain)) for _ in range(REPEATS)]
            read, loads = (statistics.median(column) for column in zip(*times, strict=True))
            ratio = statistics.median(b / a for a, b in times)
            print(f"{Path(name).name}: read {read:.3f} s, bare orjson.loads {loads:.3f} s, speed ratio {ratio:.2f}")
            command = [sys.executable, __file__, "--memory", str(plain)]
            peak, size = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            print(f"  reading added {peak} MB at its peak; the corpus holds {size} MB")
            longtail.write(longtail.read(plain), native, to="native")
            began = time.perf_counter()
            longtail.read(native)
            print(f"  native corpus reopened in {1000 * (time.perf_counter() - began):.1f} ms")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        memory(Path(sys.argv[2]))
    else:
        main(sys.argv[1:])
