"""Fixtures and settings for all tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from longtail import _native

if "PYTEST_XDIST_WORKER" in os.environ:  # tests side by side have a core each: threads of torch wait busily
    os.environ.setdefault("LONGTAIL_THREADS", "1")
# virtual machines may announce AMX and not allow it: bfloat16 products would then end the process
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

sys.path.insert(0, str(Path(__file__).parent))  # tests share corpora.py

# deadlines are off: the machine may be busy, and timings belong in bench/. Where CI is set the same cases are tried
# every time, so that what fails there is what the change did; at home new ones are.
settings.register_profile(
    "longtail", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("longtail")


@pytest.fixture(autouse=True)
def _same_threads_after() -> Iterator[None]:
    before = _native.get_threads()
    yield
    _native.set_threads(before)


@pytest.fixture(autouse=True, scope="session")
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For the whole session: fixtures of modules train too, and would otherwise use the cache of the user."""
    with pytest.MonkeyPatch.context() as patch:
        if "LONGTAIL_CACHE" not in os.environ:
            patch.setenv("LONGTAIL_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield
