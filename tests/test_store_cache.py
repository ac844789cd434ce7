"""The cache: builds once, rebuilds damaged entries, and never makes a computation fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from longtail.cli.main import main
from longtail.core.errors import StoreError
from longtail.store import lock
from longtail.store.cache import cache_folder, cached, forget, without_cache


class Builder:
    """Counts how often it is called."""

    def __init__(self, value=1):
        self.calls, self.value = 0, value

    def __call__(self):
        self.calls += 1
        return {"x": np.full(5, self.value), "y.z": np.arange(3.0)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_builds_once(folder):
    build = Builder()
    first, second = cached("key", build), cached("key", build)
    assert build.calls == 1 and first["x"].tolist() == second["x"].tolist() == [1] * 5
    assert second["y.z"].tolist() == [0, 1, 2] and not second["x"].flags.writeable
    assert cached("other key", Builder(2))["x"][0] == 2 and len(list(folder.iterdir())) == 2
    assert cached("key \ud800", build)["x"][0] == 1


def test_can_be_turned_off(folder):
    build = Builder()
    with without_cache():
        for _ in range(2):
            assert cached("key", build)["x"][0] == 1
        assert build.calls == 2 and not folder.exists()
    cached("key", build)
    assert build.calls == 3 and folder.exists()
    with without_cache(), without_cache(False):
        cached("key", build)
    assert build.calls == 3


def test_a_training_without_it_leaves_nothing(folder, tmp_path):
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    rows = [{"text": f"{words[i % 10]} {words[i % 7]}", "labels": [words[i % 10]]} for i in range(40)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    small = ["--set", "steps=1", "--set", "dimension=64", "--set", "length=4", "--set", "clusters=3", "--quiet"]
    given = ["train", str(tmp_path / "data.jsonl"), "--recipe", "inceptionxml", *small]
    assert main([*given, "--no-cache"]) == 0 and not folder.exists()
    assert main(given) == 0 and any(folder.iterdir())


@pytest.mark.parametrize("victim", ["cache.json", "x.npy"])
@pytest.mark.parametrize("damage", ["garbage", "missing", "one bit"])
def test_a_damaged_entry_is_built_again(folder, victim, damage):
    cached("key", Builder())
    (path,) = folder.rglob(victim)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"?" * len(content) if damage == "garbage" else content[:-2] + b"\1" + content[-1:])
    build = Builder()
    assert cached("key", build)["x"].tolist() == [1] * 5 and build.calls == 1
    assert cached("key", build)["x"].tolist() == [1] * 5 and build.calls == 1
    assert len(list(folder.rglob("data-*"))) == 1


def test_an_entry_of_a_newer_longtail_is_built_again(folder):
    cached("key", Builder())
    (path,) = folder.rglob("cache.json")
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    build = Builder()
    cached("key", build), cached("key", build)
    assert build.calls == 1


def test_a_cache_that_cannot_be_written_costs_a_warning(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "file"))
    assert cached("key", Builder())["x"][0] == 1
    assert "could not write to the cache" in caplog.text


def test_a_writer_in_the_way_costs_a_warning(folder, monkeypatch, caplog):
    cached("key", Builder())
    (path,) = folder.rglob("cache.json")
    path.unlink()
    monkeypatch.setattr(lock, "WAIT", 0.05)
    with lock.locked(path.parent):
        assert cached("key", Builder())["x"][0] == 1
    assert "is saving to this folder" in caplog.text


def test_errors_of_the_builder_pass_through():
    def build():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cached("key", build)


def test_two_processes_at_once(folder):
    program = (
        "import numpy as np; from longtail.store.cache import cached\n"
        "for i in range(40): assert cached(f'k{i}', lambda: {'x': np.full(9, i)})['x'].tolist() == [i] * 9"
    )
    children = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(3)]
    for child in children:
        _, errors = child.communicate()
        assert child.returncode == 0 and not errors, errors.decode()
    build = Builder()
    for i in range(40):
        assert cached(f"k{i}", build)["x"].tolist() == [i] * 9
    assert build.calls == 0 and len(list(folder.rglob("data-*"))) == 40


def test_where_the_cache_is(monkeypatch):
    assert cache_folder() == Path(os.environ["LONGTAIL_CACHE"])
    monkeypatch.setenv("LONGTAIL_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.setenv("LONGTAIL_CACHE", "")
    assert cache_folder() == platformdirs.user_cache_path("longtail", appauthor=False)
    assert "longtail" in cache_folder().parts


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the folders of Linux")
def test_where_the_cache_is_on_linux(monkeypatch, tmp_path):
    monkeypatch.delenv("LONGTAIL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "longtail"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "longtail"


def test_refuses_what_cannot_be_kept_with_a_warning(caplog):
    assert cached("key", lambda: {"bad name": np.arange(2)})["bad name"].tolist() == [0, 1]
    assert "array names use letters" in caplog.text


def test_a_user_without_a_home_computes_without_a_cache(monkeypatch, caplog):
    """As in a container whose user id has no entry in the user database."""
    pwd = pytest.importorskip("pwd")

    def unknown(*_):
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "LONGTAIL_CACHE"):
        monkeypatch.delenv(name, raising=False)
    assert cached("key", Builder(3))["x"][0] == 3
    assert "set LONGTAIL_CACHE to a folder" in caplog.text
    monkeypatch.setenv("LONGTAIL_CACHE", "~/mine")
    with pytest.raises(StoreError, match="set LONGTAIL_CACHE to a folder"):
        cache_folder()


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_forgetting_deletes_links_and_not_what_they_lead_to(folder, tmp_path):
    cached("key", Builder())
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    before = sorted(path.relative_to(elsewhere) for path in elsewhere.rglob("*"))
    (entry,) = elsewhere.iterdir()
    (tmp_path / ".run").symlink_to(elsewhere)
    forget(tmp_path / ".run")
    assert not (tmp_path / ".run").exists()
    folder.mkdir()
    (folder / entry.name).symlink_to(entry)
    forget(folder)
    assert not folder.exists()
    assert sorted(path.relative_to(elsewhere) for path in elsewhere.rglob("*")) == before
