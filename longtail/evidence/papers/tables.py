"""All tables that `longtail reproduce` fills, by id."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.core.errors import ParameterError, nearest
from longtail.evidence.papers import gandalf, transformers, unidec, unidec_2024
from longtail.evidence.papers.table import PaperTable

TABLES: tuple[PaperTable, ...] = (*gandalf.TABLES, *unidec.TABLES, *unidec_2024.TABLES, *transformers.TABLES)


def table_of(id: str) -> PaperTable | None:
    """The table with this id, such as 001-T1.3; T1.3 is enough where no other paper has it. None if there is none."""
    known = {table.id.lower(): table for table in TABLES}
    if id.lower() in known:
        return known[id.lower()]
    found = [table for name, table in known.items() if name.partition("-")[2] == id.lower()]
    if len(found) > 1:
        raise ParameterError(f"there are several tables {id}; take one of: {', '.join(table.id for table in found)}")
    return found[0] if found else None


def split_ids(ids: Sequence[str], claims: Sequence[str]) -> tuple[list[str], list[PaperTable]]:
    """The ids of claims, and the tables, among what a user asked for; refuses what is neither."""
    known, own, tables = {id.lower() for id in claims}, [], []
    for id in ids:
        table = None if id.lower() in known else table_of(id)
        if table is not None:
            tables.append(table)
        elif id.lower() in known:
            own.append(id)
        else:
            names = [*claims, *(table.id for table in TABLES), *(table.id.partition("-")[2] for table in TABLES)]
            raise ParameterError(f"there is no claim {id!r} and no table.{nearest(id.upper(), names)}")
    return own, tables
