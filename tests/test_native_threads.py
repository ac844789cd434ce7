"""Threads of the kernels: counted once for each call, none after fork, and stopped by the first error.

Each case is a process of its own, since what went wrong here once ended the process or never came back.
"""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from longtail import _native

BEGIN = """
import faulthandler, sys
faulthandler.enable()
sys.path.insert(0, {tests!r})
import numpy as np
import longtail
from longtail import _native
from corpora import topic_corpus

corpus = topic_corpus(400)
model = longtail.recipe("xr-linear", branching=2, leaf_size=2).fit(corpus, longtail.Run(threads=2))
texts = list(corpus.train.texts) * 10
expected = model.predict(texts, k=5).indices
"""


# every larger piece of memory is asked of the system, so that a limit is met there
TIGHT = {"MALLOC_MMAP_THRESHOLD_": "8192", "MALLOC_MMAP_MAX_": "1000000", "MALLOC_TRIM_THRESHOLD_": "0"}


def run(code: str, timeout: float = 120.0, **environment: str) -> str:
    """What a process prints that runs this code; its output is in the error if it fails."""
    whole = BEGIN.format(tests=str(Path(__file__).parent)) + textwrap.dedent(code)
    command, environment = [sys.executable, "-c", whole], os.environ | environment
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_number_of_threads_may_change_while_others_predict() -> None:
    run("""
        import threading, time
        done = threading.Event()

        def change():
            while not done.is_set():
                for count in (1, 16, 2, 7):
                    _native.set_threads(count)

        same = []  # an error in a thread of Python does not end the process: results are looked at below

        def predict(own):
            for _ in range(40):
                with _native.native_threads(own):
                    same.append(np.array_equal(model.predict(texts, k=5).indices, expected))
                same.append(np.array_equal(model.predict(texts, k=5).indices, expected))

        changing = threading.Thread(target=change)
        changing.start()
        workers = [threading.Thread(target=predict, args=(own,)) for own in (1, 16)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
        done.set()
        changing.join()
        assert len(same) == 160 and all(same), (len(same), same.count(False))
    """)


def test_threads_of_a_block_are_those_of_its_python_thread() -> None:
    before, seen = _native.get_threads(), []
    with _native.native_threads(before + 3):
        other = threading.Thread(target=lambda: seen.append(_native.get_threads()))
        other.start()
        other.join()
        assert _native.get_threads() == before + 3
        with _native.native_threads(1):
            assert _native.get_threads() == 1
        assert _native.get_threads() == before + 3
    assert _native.get_threads() == before
    assert seen == [before]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_process_made_by_fork_works_on_one_thread() -> None:
    said = run("""
        import multiprocessing

        def work(_):
            again = longtail.recipe("xr-linear", branching=2, leaf_size=2).fit(corpus, longtail.Run(threads=2))
            same = np.array_equal(model.predict(texts, k=5).indices, expected)
            return same and np.array_equal(again.predict(texts, k=5).indices, expected), _native.get_threads()

        _native.set_threads(2)
        model.predict(texts, k=5)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4), chunksize=1))
        assert _native.get_threads() == 2
    """)
    assert said.split("\n")[0] == str([(True, 1)] * 4)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory as Linux has them")
def test_training_without_enough_memory_is_an_error_and_no_crash() -> None:
    """Memory ends at a different place each time; the first training shows how much is needed at all."""
    run(
        """
        import resource
        from longtail.data.from_lists import corpus_from_lists

        def size():
            return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

        rng = np.random.default_rng(0)
        words = [f"w{i}" for i in range(20_000)]
        wide = [" ".join(rng.choice(words, 40)) for _ in range(1500)]
        labels = [[f"l{i % 400}", f"m{i % 70}"] for i in range(1500)]
        whole = corpus_from_lists(wide, labels)
        recipe = longtail.recipe("xr-linear", negatives="tfn+man")
        run = longtail.Run(threads=4)
        recipe.train(whole.train, whole.labels, run)
        failed = 0
        for extra in np.linspace(0.5, 12, 12):
            before = size()
            resource.setrlimit(resource.RLIMIT_AS, (before + int(extra * 1e6), resource.RLIM_INFINITY))
            try:
                recipe.train(whole.train, whole.labels, run)
            except (MemoryError, longtail.LongtailError):
                failed += 1
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert failed
        recipe.train(whole.train, whole.labels, run)
        print(failed)
    """,
        **TIGHT,
    )
