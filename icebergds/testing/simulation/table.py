"""Creates the table of a simulation, with accounts that have money."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from icebergds.commit.snapshot_commit import Committed
from icebergds.operations.options.partition_text import parse_partition_by
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    ENCRYPTION_KEY_ID,
    STATISTICS_IN_CLEAR,
)
from icebergds.spec.types import INT, LONG, NestedField
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.testing.simulation.auditor import Auditor
from icebergds.testing.simulation.determinism import drawn
from icebergds.testing.simulation.maintainers import PROPERTIES
from icebergds.testing.simulation.places import MASTER_KEY, Place
from icebergds.testing.simulation.rows import CORE, GROUP, ID, VALUE, put
from icebergds.testing.simulation.steps import ACCOUNTS, MONEY, Outcome, Step, arrow_rows

_SCHEMA = Schema(
    (
        NestedField(CORE.key, ID, LONG, required=True),
        NestedField(CORE.group, GROUP, INT),
        NestedField(CORE.value, VALUE, LONG),
    ),
    identifier_field_ids=(CORE.key,),
)
_PARTITIONS = ("", GROUP, f"bucket(3, {ID})", f"truncate(1000, {ID})")
_VERSIONS = (1, 2, 2, 2, 3, 3, 3, 3)


@dataclass(frozen=True, slots=True)
class SimulatedTable:
    """What the table of a simulation is like."""

    version: int
    partitions: str
    properties: Mapping[str, str]

    @classmethod
    def drawn(cls, seed: int, *, upgraded: bool = False) -> Self:
        """Draws it from the seed.

        Args:
            upgraded: whether it supports deletes from the beginning.
        """
        return cls.of(drawn(seed, 10), upgraded=upgraded)

    @classmethod
    def of(cls, chance: random.Random, *, upgraded: bool = False) -> Self:
        version = chance.choice(_VERSIONS)
        return cls(
            max(version, 2) if upgraded else version,
            chance.choice(_PARTITIONS),
            {name: chance.choice(values) for name, values in PROPERTIES if chance.random() < 0.5},
        )


def create_table(place: Place, table: SimulatedTable, auditor: Auditor) -> None:
    """Creates a table and its accounts; both are step 0, which has no faults."""
    spec = PartitionSpec()
    if table.partitions:
        spec = parse_partition_by(table.partitions, _SCHEMA)
    place.create(
        new_table_updates(
            _SCHEMA,
            location=place.catalog.new_table_location(place.identifier),
            spec=spec,
            properties={**table.properties, **_encryption(place, table, auditor.shared.seed)},
            format_version=table.version,
        )
    )
    each = MONEY // len(ACCOUNTS)
    rows = [{CORE.key: key, CORE.group: 0, CORE.value: each} for key in ACCOUNTS]
    step = Step(0, "bank", drawn(auditor.shared.seed, 8, 0), effect=put(rows))
    auditor.add(step)
    created = place.table()
    counts = created.append(arrow_rows(rows, created.schema()), snapshot_properties=step.summary)
    step.outcome = Outcome.DONE
    auditor.ended(step, counts.snapshot_id)


def _encryption(place: Place, table: SimulatedTable, seed: int) -> dict[str, str]:
    """The properties of a table that is to be encrypted; none for others."""
    # Drawn apart: other draws are the same without the package cryptography.
    chance = drawn(seed, 14, len(table.partitions))
    is_encrypted, in_clear = chance.random() < 0.4, chance.choice(["true", "false"])
    if not is_encrypted or table.version < 3 or not place.has_keys:
        return {}
    found = {ENCRYPTION_KEY_ID.name: MASTER_KEY, STATISTICS_IN_CLEAR.name: in_clear}
    if DEFAULT_FILE_FORMAT.of(table.properties) == "orc":
        # Which cannot be encrypted: most steps would fail.
        found[DEFAULT_FILE_FORMAT.name] = "parquet"
    return found


def snapshot_of(answer: Any) -> int | None:
    """The snapshot that an answer of `Table` tells."""
    if isinstance(answer, RowCounts):
        return answer.snapshot_id
    return answer.snapshot.snapshot_id if isinstance(answer, Committed) else None
