"""All claims that `longtail reproduce` measures, by id. A new system adds its claims in a file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from longtail.core.errors import ParameterError, nearest
from longtail.evidence import duals, gandalf, transformers
from longtail.evidence.claim import Claim

CLAIMS: tuple[Claim, ...] = (*gandalf.CLAIMS, *duals.CLAIMS, *transformers.CLAIMS)


def claims_of(ids: Sequence[str] = (), seeds: Sequence[int] | None = None) -> list[Claim]:
    """The claims with these ids, in the order of the table; without ids, all. `seeds` replaces those of the claims."""
    known = {claim.id.lower(): claim for claim in CLAIMS}
    for id in ids:
        if id.lower() not in known:
            raise ParameterError(f"there is no claim {id!r}.{nearest(id.upper(), [c.id for c in CLAIMS])}")
    wanted = {id.lower() for id in ids} or set(known)
    found = [claim for claim in CLAIMS if claim.id.lower() in wanted]
    return found if seeds is None else [replace(claim, seeds=tuple(dict.fromkeys(seeds)), once=()) for claim in found]
