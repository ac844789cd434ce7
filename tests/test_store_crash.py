"""Crash safety: a save that is stopped anywhere, in any way, leaves the old content or the new.

Run as a program, this file is the process that gets killed: it forks a child for every change a save makes,
and the child kills itself just before that change.
"""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from test_store_model import make, tiny  # noqa: F401

from longtail.core.errors import StoreError
from longtail.store import disk, lock, npy
from longtail.store.cache import cached
from longtail.store.folder import open_folder, save_folder
from longtail.store.model import load

NAME, KIND = "thing.json", "longtail-thing"
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def arrays_of(seed):
    rng = np.random.default_rng(seed)
    return {"one": rng.normal(size=40), "two": rng.integers(0, 9, (3, 5)), "none": np.empty(0)}


def save(folder, seed):
    save_folder(folder, NAME, KIND, {"seed": seed}, arrays_of(seed), overwrite=True)


def state(folder):
    """Which state a folder holds, compared completely: its seed, or None if it holds none."""
    try:
        manifest, arrays = open_folder(folder, NAME, KIND)
    except StoreError as error:
        assert "there is no such folder" in str(error) or "there is no thing in it" in str(error)
        return None
    expected = arrays_of(manifest["seed"])
    assert arrays.keys() == expected.keys() and all(np.array_equal(arrays[k], expected[k]) for k in arrays)
    return manifest["seed"]


def state_of_model(folder):
    model = load(folder)
    expected = make(model.about["seed"])
    assert np.array_equal(model.weights, expected.weights) and model.labels.digest() == expected.labels.digest()
    return model.about["seed"]


def assert_clean(folder, manifest_name):
    """Only the named generation, and no temporary file."""
    generation = json.loads((folder / manifest_name).read_text())["generation"]
    assert {p.name for p in folder.iterdir()} == {".lock", generation, manifest_name}


# -- the process that is killed


def save_to_cache(folder):
    os.environ["LONGTAIL_CACHE"] = str(folder)
    cached("key", lambda: arrays_of(2))


SCENARIOS = {
    "folder": lambda folder: save(folder, 2),
    "model": lambda folder: make(2).save(folder, overwrite=True),
    "cache": save_to_cache,
}


def kill_everywhere(scenario, start, work):
    """Stop the scenario before its n-th change, in folder n, for n = 1, 2, … until a run completes; returns that n."""
    for n in itertools.count(1):
        folder = work / str(n)
        if start.exists():
            shutil.copytree(start, folder)
        pid = os.fork()
        if not pid:
            run_and_exit(lambda n=n, folder=folder: SCENARIOS[scenario](folder), disk.kill_at(n))
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return n
        assert os.WTERMSIG(status) == signal.SIGKILL


def kill_at_random(start, work):
    """Save two states alternately, killed at any moment; 40 times."""
    rng = random.Random(0)
    shutil.copytree(start, work / "x")
    for _ in range(40):
        pid = os.fork()
        if not pid:
            run_and_exit(lambda: [save(work / "x", 1 + i % 2) for i in range(10_000)], None)
        time.sleep(rng.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        state(work / "x")


def run_and_exit(action, hook):
    """In a forked child: never return, whatever happens."""
    code = 1
    try:
        disk.hook = hook
        npy.CHUNK = 128  # so that files are written, and left, in pieces
        action()
        code = 0
    finally:
        os._exit(code)


def in_new_process(scenario, work, *starts):
    """Run this file as a program: for each start, the folders left by kills, and last the one of a complete run."""
    done = subprocess.run([sys.executable, __file__, scenario, work, *starts], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return [[work / str(i) / str(n + 1) for n in range(runs)] for i, runs in enumerate(json.loads(done.stdout))]


def program(scenario, work, *starts):
    """What the new process does."""
    if scenario == "random":
        work.mkdir()
        kill_at_random(*starts, work)
        return
    runs = []
    for i, start in enumerate(starts):
        (work / str(i)).mkdir(parents=True)
        runs.append(kill_everywhere(scenario, start, work / str(i)))
    print(json.dumps(runs))


# -- the tests


@forks
def test_killed_at_every_change_of_a_save_over_an_old_model(tmp_path):
    make(1).save(tmp_path / "start")
    (folders,) = in_new_process("model", tmp_path / "work", tmp_path / "start")
    states = [state_of_model(folder) for folder in folders]
    assert states == sorted(states) and states.count(1) > 30 and states.count(2) > 5
    for folder in folders:
        make(3).save(folder, overwrite=True)
        assert state_of_model(folder) == 3
        assert_clean(folder, "model.json")


@forks
@pytest.mark.parametrize("again", [2, 3])
def test_killed_at_every_change_of_a_first_save(tmp_path, again):
    (folders,) = in_new_process("folder", tmp_path / "work", tmp_path / "nothing")
    states = [state(folder) for folder in folders]
    assert states == sorted(states, key=bool) and states.count(None) > 10 and states.count(2) >= 2
    for folder in folders:
        save(folder, again)  # also the same content again, which may be half there
        assert state(folder) == again
        assert_clean(folder, NAME)


@forks
def test_killed_at_every_change_of_a_save_over_a_killed_save(tmp_path):
    """The leftovers of a killed writer are a possible start too: kill a save on top of them as well."""
    save(tmp_path / "start", 1)
    (first,) = in_new_process("folder", tmp_path / "first", tmp_path / "start")
    for second in in_new_process("folder", tmp_path / "second", *first[::5]):
        states = [state(folder) for folder in second]
        assert states == sorted(states) and states[-1] == 2 and None not in states
        assert_clean(second[-1], NAME)


@forks
@pytest.mark.parametrize("damaged", [False, True])
def test_killed_at_every_change_of_the_cache(tmp_path, monkeypatch, damaged):
    if damaged:
        save_to_cache(tmp_path / "start")
        (victim,) = (tmp_path / "start").rglob("cache.json")
        victim.write_text("?")
    (folders,) = in_new_process("cache", tmp_path / "work", tmp_path / "start")
    assert len(folders) > 15
    for folder in folders:
        monkeypatch.setenv("LONGTAIL_CACHE", str(folder))
        for _ in range(2):
            found = cached("key", lambda: arrays_of(2))
            assert all(np.array_equal(found[k], v) for k, v in arrays_of(2).items())
        (entry,) = folder.iterdir()
        assert_clean(entry, "cache.json")


@forks
def test_killed_at_random_moments(tmp_path):
    save(tmp_path / "start", 1)
    subprocess.run([sys.executable, __file__, "random", tmp_path / "work", tmp_path / "start"], check=True)
    save(tmp_path / "work" / "x", 3)
    assert state(tmp_path / "work" / "x") == 3
    assert_clean(tmp_path / "work" / "x", NAME)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_the_environment_variable_kills(tmp_path):
    save(tmp_path / "f", 1)
    program = f"""
import numpy as np
from longtail.store.folder import save_folder
save_folder({str(tmp_path / "f")!r}, {NAME!r}, {KIND!r}, {{}}, {{"one": np.arange(3)}}, overwrite=True)
"""
    env = os.environ | {"LONGTAIL_STORE_KILL_AT": "6"}
    assert subprocess.run([sys.executable, "-c", program], env=env).returncode == -signal.SIGKILL
    assert state(tmp_path / "f") == 1


class PowerCut:
    """A hook that tracks what has been synced, and builds folders as a power cut may leave them.

    A promise is an fsync: of a file for its content, of a folder for the names in it. What is not promised may
    be there or not, each thing by itself: a file that is not synced is cut anywhere, a name made, replaced or
    deleted in a folder that is not synced is there in its new form, in its old, or not at all.
    """

    def __init__(self, root, seed, look):
        self.root, self.rng, self.look = root, random.Random(seed), look
        self.durable = self.now()
        self.loose_content, self.loose_names = set(), set()

    def now(self):
        return {p: p.read_bytes() if p.is_file() else None for p in self.root.rglob("*")}

    def __call__(self, action, path):
        now = self.now()
        for _ in range(4):
            self.look(self.after_a_cut(now))
        if action == "fsync" and path.is_dir():
            for name in [n for n in self.loose_names if n.parent == path]:
                self.loose_names.discard(name)
                self.durable.pop(name, None)
                if name in now:
                    self.durable[name] = now[name]
        elif action == "fsync":
            self.loose_content.discard(path)
        else:
            if action in ("create", "write"):
                self.loose_content.add(path)
            if action != "write":
                self.loose_names.add(path)
            if action == "replace":
                self.loose_names.add(path.with_name(f".{path.name}.tmp"))

    def after_a_cut(self, now):
        left = {}
        for path in sorted(now.keys() | self.durable.keys()):  # folders before what is in them
            source = self.rng.choice([now, self.durable]) if path in self.loose_names else now
            if path not in source or (path.parent != self.root and path.parent not in left):
                continue
            content = source[path]
            if path in self.loose_content and content:
                content = content[: self.rng.randrange(len(content) + 1)]
            left[path] = content
        return left


@pytest.mark.parametrize("before", [None, 1])
def test_a_power_cut_at_any_change(tmp_path, monkeypatch, before):
    root, seen = tmp_path / "f", []
    root.mkdir()
    if before:
        save(root, before)

    def look(left):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for path, content in left.items():
            place = copy / path.relative_to(root)
            if content is None:
                place.mkdir()
            else:
                place.write_bytes(content)
        seen.append(state(copy))

    for round in range(3):
        cut = PowerCut(root, round, look)
        monkeypatch.setattr(disk, "hook", cut)
        save(root, 2)
        monkeypatch.setattr(disk, "hook", None)
        look(cut.after_a_cut(cut.now()))
        assert seen[-1] == 2  # what a finished save has written stays written
        shutil.rmtree(root)
        root.mkdir()
        if before:
            save(root, before)
    assert set(seen) == {before, 2}


def test_readers_never_notice_a_writer(tmp_path):
    folder, done = tmp_path / "f", threading.Event()
    save(folder, 1)

    def read():
        seen = []
        while not done.is_set():
            seen.append(state(folder))
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for i in range(30):
            save(folder, 2 - i % 2)
        done.set()
        assert all(set(reader.result()) == {1, 2} for reader in readers)


def test_writers_follow_one_another(tmp_path, monkeypatch):
    folder = tmp_path / "f"
    monkeypatch.setattr(lock, "WAIT", 60)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda i: save(folder, 1 + i % 3), range(15)))
    assert state(folder) in (1, 2, 3)
    assert_clean(folder, NAME)


if __name__ == "__main__":
    program(sys.argv[1], *map(Path, sys.argv[2:]))
