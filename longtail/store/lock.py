"""Locks that allow one writer at a time in a folder. Readers take no lock."""

from __future__ import annotations

import errno
import logging
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longtail.core.errors import StoreError
from longtail.store import disk

log = logging.getLogger("longtail")

LOCK = ".lock"
WAIT = 10.0  # how many seconds a second writer waits before it gives up
PAUSE = 0.02


@contextmanager
def locked(folder: Path, wait: float | None = None) -> Iterator[None]:
    """Hold the write lock of `folder` during the block. The system releases it when the process dies.

    Where locks are not available (Windows, some network disks), the block runs without one. The lock file is kept
    after the lock is released: deleting it would let two writers hold locks on two files of the same name.
    """
    if disk.fcntl is None:
        yield
        return
    path = folder / LOCK
    handle = disk.open_lock(path)
    try:
        _acquire(handle, path, WAIT if wait is None else wait)
        disk.overwrite(handle, path, f"process {os.getpid()} on {platform.node()}\n".encode())
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, path: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            disk.fcntl.flock(handle, disk.fcntl.LOCK_EX | disk.fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                log.warning("%s: this disk does not support locks (%s); saving without one", path, error.strerror)
                return
        if time.monotonic() >= deadline:
            holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
            raise StoreError(f"{path.parent}: {holder} is saving to this folder; save again when it is done")
        time.sleep(PAUSE)
