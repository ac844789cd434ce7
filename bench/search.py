"""Libraries of approximate search against exact search: recall@10, queries a second, and what an index costs.

    python bench/search.py --python PEERS/bin/python [--sizes 65536 1000000] [--width 256] [--vectors labels.npy]
        [--queries queries.npy] [--only NAME …] [--threads 1 2] [--seconds 3] [--json FILE]

PEERS is a virtual environment with numpy, usearch, hnswlib, faiss-cpu and voyager; rows of longtail run in this one.
Vectors come from a .npy file (they are normalised here), or are drawn: clusters whose sizes follow Zipf's law, and
queries near vectors. Every system runs in its own processes: one builds on the last number of threads and saves, a
fresh one loads and answers. A system with a setting for effort gives a row for each value of it. Prints Markdown:

- recall@10: share of the exact ten that were found;
- one query per call on one thread, as a service does: the median time; queries a second in batches of 1,000, for each
  number of threads;
- build: seconds; memory: what the answering process holds after its queries, beyond what it held before loading (mapped
  pages that were touched count); disk: all files of the index.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

K, BATCH = 10, 1000
LINKS, EFFORT_BUILD = 16, 128
EFFORTS = (16, 32, 64, 128, 256)
PROBES = (4, 8, 16, 32, 64)
Answers = Callable[[Any, int, int], Any]  # queries (B, d), effort, threads → numbers (B, K)


# --- the systems: build(vectors, folder, threads), and load(folder, vectors' path) → answers ------------------------


def usearch_build(dtype: str) -> Callable[..., None]:
    def build(v: Any, folder: Path, threads: int) -> None:
        from usearch.index import Index

        made = Index(ndim=v.shape[1], metric="ip", dtype=dtype, connectivity=LINKS, expansion_add=EFFORT_BUILD)
        made.add(np.arange(len(v)), v, threads=threads)
        made.save(str(folder / "index"))

    return build


def usearch_load(folder: Path, _: Path) -> Answers:
    from usearch.index import Index

    held = Index.restore(str(folder / "index"), view=True)

    def answers(q: Any, effort: int, threads: int) -> Any:
        held.expansion_search = effort
        return np.asarray(held.search(q, K, threads=threads).keys).reshape(len(q), -1)

    return answers


def hnswlib_build(v: Any, folder: Path, threads: int) -> None:
    import hnswlib

    made = hnswlib.Index(space="ip", dim=v.shape[1])
    made.init_index(max_elements=len(v), ef_construction=EFFORT_BUILD, M=LINKS)
    made.add_items(v, np.arange(len(v)), num_threads=threads)
    made.save_index(str(folder / "index"))


def hnswlib_load(folder: Path, vectors: Path) -> Answers:
    import hnswlib

    held = hnswlib.Index(space="ip", dim=np.load(vectors, mmap_mode="r").shape[1])
    held.load_index(str(folder / "index"))

    def answers(q: Any, effort: int, threads: int) -> Any:
        held.set_ef(effort)
        return held.knn_query(q, K, num_threads=threads)[0]

    return answers


def voyager_build(v: Any, folder: Path, threads: int) -> None:
    import voyager

    space = voyager.Space.InnerProduct
    made = voyager.Index(space, v.shape[1], M=LINKS, ef_construction=EFFORT_BUILD, max_elements=len(v))
    made.add_items(v, np.arange(len(v)), num_threads=threads)
    made.save(str(folder / "index"))


def voyager_load(folder: Path, _: Path) -> Answers:
    import voyager

    held = voyager.Index.load(str(folder / "index"))
    return lambda q, effort, threads: held.query(q, K, num_threads=threads, query_ef=effort)[0]


def faiss_build(form: str) -> Callable[..., None]:
    def build(v: Any, folder: Path, threads: int) -> None:
        import faiss

        faiss.omp_set_num_threads(threads)
        text = form.format(lists=max(1, int(2 * len(v) ** 0.5)))
        made = faiss.index_factory(v.shape[1], text, faiss.METRIC_INNER_PRODUCT)
        if form.startswith("HNSW"):
            made.hnsw.efConstruction = EFFORT_BUILD
        made.train(v)
        made.add(v)
        faiss.write_index(made, str(folder / "index"))

    return build


def faiss_load(folder: Path, _: Path) -> Answers:
    import faiss

    held = faiss.read_index(str(folder / "index"), faiss.IO_FLAG_MMAP_IFC)

    def answers(q: Any, effort: int, threads: int) -> Any:
        faiss.omp_set_num_threads(threads)
        if hasattr(held, "hnsw"):
            wish = faiss.SearchParametersHNSW(efSearch=effort)
        else:
            wish = faiss.SearchParametersIVF(nprobe=effort)
        return held.search(q, K, params=wish)[1]

    return answers


def longtail_build(**settings: Any) -> Callable[..., None]:
    def build(v: Any, folder: Path, threads: int) -> None:
        from longtail import _native
        from longtail.search.index import SearchSettings

        _native.set_threads(threads)
        arrays, meta = SearchSettings(**settings).build(v).state()
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        (folder / "meta.json").write_text(json.dumps(meta))

    return build


def longtail_load(folder: Path, _: Path) -> Answers:
    from longtail import _native
    from longtail.search.index import load_index

    arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    meta = json.loads((folder / "meta.json").read_text())
    held: dict[int, Any] = {}

    def answers(q: Any, effort: int, threads: int) -> Any:
        _native.set_threads(threads)
        if effort not in held:
            held[effort] = load_index(arrays, meta | ({"probes": effort} if effort else {}))
        return held[effort].search(q, K)[0]

    return answers


SYSTEMS: dict[str, tuple[Callable[..., None], Callable[..., Answers], tuple[int, ...], str]] = {
    "longtail exact float32": (longtail_build(), longtail_load, (0,), "longtail"),
    "longtail exact float16": (longtail_build(storage="float16"), longtail_load, (0,), "longtail"),
    "longtail exact int8": (longtail_build(storage="int8"), longtail_load, (0,), "longtail"),
    "longtail approximate": (longtail_build(index="approximate"), longtail_load, PROBES, "longtail"),
    "usearch f32": (usearch_build("f32"), usearch_load, EFFORTS, "usearch"),
    "usearch f16": (usearch_build("f16"), usearch_load, EFFORTS, "usearch"),
    "usearch i8": (usearch_build("i8"), usearch_load, EFFORTS, "usearch"),
    "hnswlib": (hnswlib_build, hnswlib_load, EFFORTS, "hnswlib"),
    "voyager": (voyager_build, voyager_load, EFFORTS, "voyager"),
    "faiss HNSW": (faiss_build(f"HNSW{LINKS},Flat"), faiss_load, EFFORTS, "faiss"),
    "faiss HNSW SQ8": (faiss_build(f"HNSW{LINKS}_SQ8"), faiss_load, EFFORTS, "faiss"),
    "faiss IVF": (faiss_build("IVF{lists},Flat"), faiss_load, PROBES, "faiss"),
    "faiss IVF SQ8": (faiss_build("IVF{lists},SQ8"), faiss_load, PROBES, "faiss"),
}
MODULES = {
    "longtail": ("longtail.search.exact", "longtail.search.approximate"),
    "usearch": ("usearch.index",),
}
PACKAGES = {"usearch": "usearch", "hnswlib": "hnswlib", "voyager": "voyager", "faiss": "faiss-cpu"}
MAPS = {
    "longtail": "yes",
    "usearch": "yes",
    "hnswlib": "no",
    "voyager": "no",
    "faiss": "yes",
}  # answers from mapped files


# --- a process of one system -----------------------------------------------------------------------------------------


def resident() -> float:
    """Return the megabytes of physical memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def build_worker(name: str, work: Path, threads: int) -> dict[str, Any]:
    build, _, _, module = SYSTEMS[name]
    for needed in MODULES.get(module, (module,)):  # before anything is measured
        importlib.import_module(needed)
    v = np.load(work / "vectors.npy")
    start = time.perf_counter()
    build(v, work / "index", threads)
    took = time.perf_counter() - start
    return {"build": took, "disk": sum(path.stat().st_size for path in (work / "index").iterdir()) / 1e6}


def answer_worker(name: str, work: Path, threads: list[int], seconds: float) -> dict[str, Any]:
    _, load, efforts, module = SYSTEMS[name]
    for needed in MODULES.get(module, (module,)):  # before anything is measured
        importlib.import_module(needed)
    queries, truth = np.load(work / "queries.npy"), np.load(work / "truth.npy")
    before, start = resident(), time.perf_counter()
    answers = load(work / "index", work / "vectors.npy")
    loaded, rows = time.perf_counter() - start, []
    for effort in efforts:
        found = answers(queries, effort, threads[-1])
        hits = (found[:, :, None] == truth[:, None, :]).any(2).sum() / truth.size
        rows.append({"effort": effort, "recall": float(hits), **speeds(answers, queries, effort, threads, seconds)})
    return {"load": loaded, "memory": resident() - before, "rows": rows}


def speeds(answers: Answers, queries: Any, effort: int, threads: list[int], seconds: float) -> dict[str, Any]:
    """Return the times of one query per call, and queries a second of batches."""
    times: list[float] = []
    stop = time.perf_counter() + seconds
    for i in range(10**9):
        query = queries[i % len(queries)][None]
        start = time.perf_counter()
        answers(query, effort, 1)
        times.append(time.perf_counter() - start)
        if time.perf_counter() > stop and len(times) >= 10:
            break
    batches = {}
    for count in threads:
        done, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds or not done:
            answers(queries[:BATCH], effort, count)
            done += len(queries[:BATCH])
        batches[str(count)] = done / (time.perf_counter() - start)
    return {"p50_ms": 1e3 * statistics.median(times), "batches": batches}


def facts_worker(package: str) -> dict[str, Any]:
    """Return what the installed package says about itself, and the megabytes of its files."""
    from importlib.metadata import distribution

    found = distribution(package)
    about = found.metadata
    licences = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License")]
    size = sum(Path(found.locate_file(file)).stat().st_size for file in found.files or [] if ".." not in str(file))
    needs = [text for text in found.requires or [] if "extra ==" not in text]
    licence = about.get("License-Expression") or about.get("License") or ", ".join(licences) or "not stated"
    return {"version": found.version, "licence": licence.splitlines()[0], "size": size / 1e6, "needs": needs}


# --- data, and the tables --------------------------------------------------------------------------------------------


def unit(rows: Any) -> Any:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def drawn(n: int, d: int, seed: int = 0) -> Any:
    """Return n vectors of unit length around √n centres, which attract them as 1/rank."""
    rng, centres = np.random.default_rng(seed), max(1, int(n**0.5))
    shares = 1 / np.arange(1, centres + 1)
    around = unit(rng.normal(size=(centres, d)))[rng.choice(centres, n, p=shares / shares.sum())]
    for first in range(0, n, 1 << 16):
        part = around[first : first + (1 << 16)]
        part += 1.2 * rng.standard_normal(part.shape, np.float32) / d**0.5
    return unit(around)


def prepare(args: argparse.Namespace, n: int, work: Path) -> None:
    """Write vectors, queries and the exact ten of each query."""
    from longtail.search.exact import Exact

    v = unit(np.load(args.vectors)[:n]) if args.vectors else drawn(n, args.width)
    if args.queries:
        q = unit(np.load(args.queries)[:BATCH])
    else:
        rng = np.random.default_rng(1)
        near = v[rng.integers(0, len(v), BATCH)]
        q = unit(near + 0.7 * rng.standard_normal(near.shape, np.float32) / near.shape[1] ** 0.5)
    np.save(work / "vectors.npy", v)
    np.save(work / "queries.npy", q)
    np.save(work / "truth.npy", Exact(v).search(q, K)[0])


def in_process(args: argparse.Namespace, name: str, work: Path, task: str) -> dict[str, Any] | str:
    """Run a task of a system in a process; returns its figures, or the last line of its error."""
    own = task != "facts" and SYSTEMS[name][3] == "longtail"
    python = sys.executable if own else args.python
    command = [python, __file__, "--worker", task, name, str(work), "--seconds", str(args.seconds)]
    command += ["--threads", *map(str, args.threads)]
    limits = {f"{kind}_NUM_THREADS": str(max(args.threads)) for kind in ("OMP", "OPENBLAS", "MKL")}
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | limits)
    if ran.returncode:
        return (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1]
    return json.loads(ran.stdout.splitlines()[-1])


def facts(args: argparse.Namespace) -> None:
    """Print a table of the libraries: what their installed packages say."""
    print("\n| library | version | licence | installed MB | needs | answers from a mapped file |")
    print("| --- | --- | --- | ---: | --- | --- |")
    for module, package in PACKAGES.items():
        told = in_process(args, package, Path(), "facts")
        if isinstance(told, str):
            print(f"| {package} | failed: {told} |")
            continue
        needs = ", ".join(told["needs"])
        print(f"| {package} | {told['version']} | {told['licence']} | {told['size']:.1f} | {needs} | {MAPS[module]} |")


def measure(args: argparse.Namespace, n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        prepare(args, n, work)
        d = np.load(work / "vectors.npy", mmap_mode="r").shape[1]
        batches = " | ".join(f"batch, {t} thread{'s' * (t > 1)}" for t in args.threads)
        print(f"\n### {n:,} vectors × {d}\n")
        print(
            f"| system | effort | recall@{K} | one query, p50 ms | {batches} | build s | memory MB | disk MB | load s |"
        )
        print("| --- |" + " ---: |" * (7 + len(args.threads)))
        for name in args.only or SYSTEMS:
            (work / "index").mkdir()
            built = in_process(args, name, work, "build")
            answered = in_process(args, name, work, "answer") if isinstance(built, dict) else built
            if isinstance(built, str) or isinstance(answered, str):
                print(f"| {name} | failed: {built if isinstance(built, str) else answered} |", flush=True)
            else:
                report(args, n, name, built, answered)
            for path in (work / "index").iterdir():
                path.unlink()
            (work / "index").rmdir()


def report(args: argparse.Namespace, n: int, name: str, built: dict[str, Any], answered: dict[str, Any]) -> None:
    for i, row in enumerate(answered["rows"]):
        rates = " | ".join(f"{row['batches'][str(t)]:,.0f}" for t in args.threads)
        once = [
            f"{built['build']:.1f}",
            f"{answered['memory']:,.0f}",
            f"{built['disk']:,.0f}",
            f"{answered['load']:.2f}",
        ]
        costs = " | ".join(once if i == 0 else [""] * 4)
        effort = row["effort"] or ""
        print(f"| {name} | {effort} | {row['recall']:.4f} | {row['p50_ms']:.3f} | {rates} | {costs} |", flush=True)
        if args.json:
            with args.json.open("a") as file:
                file.write(json.dumps({"system": name, "vectors": n, **built, **answered, **row, "rows": None}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has the libraries")
    parser.add_argument("--sizes", type=int, nargs="+", default=[65536, 1_000_000])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(SYSTEMS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each speed is measured")
    parser.add_argument("--json", type=Path, help="append the figures to this file")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        task, name, work = args.worker
        if task == "facts":
            print(json.dumps(facts_worker(name)))
        elif task == "build":
            print(json.dumps(build_worker(name, Path(work), args.threads[-1])))
        else:
            print(json.dumps(answer_worker(name, Path(work), args.threads, args.seconds)))
        return
    facts(args)
    for n in args.sizes:
        measure(args, n)


if __name__ == "__main__":
    main()
