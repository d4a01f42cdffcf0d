"""Holds the tables of a simulation, each with its model and auditor, and changes some together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icebergds.api.catalog_base import Name
from icebergds.api.catalog_transaction import CatalogTransaction
from icebergds.api.table import Table
from icebergds.catalog.base import Identifier, TransactionCatalog
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.testing.simulation.auditor import Auditor
from icebergds.testing.simulation.findings import FindingKind
from icebergds.testing.simulation.injected import DrawnFaults
from icebergds.testing.simulation.places import Place
from icebergds.testing.simulation.rows import ID, KEYS, Effect, put, without
from icebergds.testing.simulation.steps import Shared, Step, arrow_rows, new_keys, new_rows
from icebergds.testing.simulation.writers import MODES

TOGETHER = "several tables"
"""The actor whose steps commit to several tables in one transaction."""


@dataclass(frozen=True, slots=True)
class AuditedTable:
    """A table, and what is known of it."""

    place: Place
    shared: Shared
    auditor: Auditor

    @property
    def steps(self) -> dict[int, Step]:
        """The steps that work on it, by their numbers."""
        return self.auditor.steps


@dataclass(frozen=True, slots=True)
class SimulatedTables:
    """All tables of a simulation."""

    tables: Sequence[AuditedTable]

    def observe(self, number: int) -> None:
        """Looks whether a step has changed its tables, and whether it changed all or none."""
        found = [table for table in self.tables if number in table.steps]
        for table in found:
            table.auditor.observe(number)
        if len(found) < 2 or not _commits_atomically(found[0].place):
            return
        having = [table for table in found if table.steps[number].committed]
        if 0 < len(having) < len(found) and found[0].steps[number].actor == TOGETHER:
            text = f"{found[0].steps[number]}: only {', '.join(t.place.name for t in having)} have "
            having[0].auditor.tell(
                FindingKind.COMMITTED_IN_PART, number, f"{text}their parts of the commit"
            )


def can_commit_together(place: Place) -> bool:
    """Whether the catalog commits to several tables at once."""
    return isinstance(place.catalog, TransactionCatalog)


def change_together(tables: Sequence[AuditedTable], number: int, faults: DrawnFaults) -> None:
    """Runs the parts of a step, one for each table, in one transaction."""
    places = {table.place.identifier: table.place for table in tables}
    catalog: Any = tables[0].place.catalog_of_process(faults)

    def load(identifier: Identifier) -> LoadedTable:
        place = places[identifier]
        return place.loaded(place.of_process(faults))

    def identifier(name: Name) -> Identifier:
        return (name,) if isinstance(name, str) else name

    with CatalogTransaction(catalog, identifier, load) as transaction:
        for of in tables:
            _change(of.steps[number], transaction.table(of.place.identifier), of.shared)


def _change(step: Step, table: Table, shared: Shared) -> None:
    """Adds rows to a table, and mostly changes or deletes others."""
    schema, chance = table.schema(), step.chance
    kind = chance.choice(["append", "delete", "upsert"])
    first = new_rows(step, schema, new_keys(step, chance.randint(1, 3)))
    old = shared.some_keys(step, 4)
    second = new_rows(step, schema, [*old, new_keys(step, 1)[0]])
    mode = {"write.upsert.mode": chance.choice(MODES)}
    effects: list[Effect] = [put(first), without(old) if kind == "delete" else put(second)]
    step.detail = f"append and {kind} in {table.name}"
    step.snapshots, step.effect = 2, lambda rows: effects[len(step.committed)](rows)
    table.append(arrow_rows(first, schema), snapshot_properties=step.summary)
    if kind == "upsert":
        table.upsert(arrow_rows(second, schema), snapshot_properties=step.summary, options=mode)
    elif kind == "delete":
        keys = pa.table({ID: pa.array(old, pa.int64())})
        table.delete_keys(keys, KEYS, snapshot_properties=step.summary, options=mode)


def _commits_atomically(place: Place) -> bool:
    return isinstance(place.catalog, TransactionCatalog) and place.catalog.commits_atomically
