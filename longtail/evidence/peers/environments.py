"""An environment for each peer, since their pins clash: made on demand in the cache, by `python -m venv` and pip."""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from longtail.core.errors import LongtailError
from longtail.evidence.peers.listed import Peer
from longtail.evidence.process import without_places
from longtail.store import disk
from longtail.store.cache import cache_folder
from longtail.store.lock import locked

log = logging.getLogger("longtail")
FOLDER = "peers"  # in the cache
VENV = "venv"  # in the folder of an environment, beside its lock
READY = "ready.json"  # written last: an environment without it is made again
PATIENCE = 3600.0  # seconds that a second process waits for the first one to install


class InstallError(LongtailError):
    """A peer that cannot be installed here; the message has pip's reason."""


def environment_folder(peer: Peer) -> Path:
    """Where the environment of a peer is; another version of the peer or of Python gets another folder."""
    known = orjson.dumps([peer.installs, sys.version_info[:2]])
    return cache_folder() / FOLDER / f"{peer.name}-{hashlib.sha256(known).hexdigest()[:12]}"


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ready(peer: Peer) -> Path | None:
    """The interpreter of a peer's environment; None if it still has to be made."""
    folder = environment_folder(peer)
    python = python_of(folder)
    return python if (folder / READY).is_file() and python.exists() else None


def made(peer: Peer) -> Path:
    """The interpreter of a peer's environment, which is made first if necessary; `InstallError` if that fails."""
    found = ready(peer)
    if found is not None:
        return found
    if peer.python is not None and sys.version_info[:2] > peer.python:
        newest = ".".join(map(str, peer.python))
        log.info("%s has wheels for Python %s and older only: installing may take long or fail", peer.name, newest)
    folder = environment_folder(peer)
    disk.make_folders(folder)
    with locked(folder, PATIENCE):
        return ready(peer) or install(peer, folder)


def install(peer: Peer, folder: Path) -> Path:
    """Make the environment in a folder that we have locked; returns its interpreter."""
    began, python = time.monotonic(), python_of(folder)
    log.info("%s: making its environment (once): %s", peer.name, " ".join(peer.pinned))
    command([sys.executable, "-m", "venv", "--clear", str(folder / VENV)], peer)
    for words in peer.installs:
        command([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words], peer)
    took = time.monotonic() - began
    disk.write_atomically(folder / READY, [orjson.dumps({"packages": peer.installs, "seconds": round(took, 1)})])
    log.info("%s: its environment is ready, after %.0f s", peer.name, took)
    return python


def command(words: Sequence[str], peer: Peer) -> None:
    """Run a command that makes a part of an environment."""
    done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise InstallError(f"{peer.name} cannot be installed: {reason(done.stderr.decode(errors='replace'))}")


def reason(said: str) -> str:
    """What pip gave as the reason, without addresses and folders."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR:", "error:"))] or lines[-2:] or ["no message"]
    text = " / ".join(dict.fromkeys(line.removeprefix("ERROR:").strip() for line in errors))
    return without_places(re.sub(r"\b\w+://\S+", "…", text))[:600]


def installed(peer: Peer) -> dict[str, str]:
    """The versions that are in a ready environment, of the packages that its peer pins."""
    folder = environment_folder(peer) / VENV
    places = [str(place) for place in (*folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages")]
    there = importlib.metadata.distributions(path=places)
    found = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in there}
    return {name: found[name] for name in peer.packages if name in found}
