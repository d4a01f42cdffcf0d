"""PyIceberg as a writer of simulated tables (`PyIcebergGuest`), which is imported when it opens.

It appends, deletes by condition and overwrites, on the catalogs that both libraries have. What
PyIceberg has not is refused, and such a step commits nothing.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pyarrow as pa

from icebergds.errors import CommitConflictError, CommitStateUnknownError, InvalidOptionError
from icebergds.spec.json.schema import schema_from_json
from icebergds.spec.schema import Schema
from icebergds.testing.simulation.determinism import InlineExecutor
from icebergds.testing.simulation.guests import GuestAct, GuestError
from icebergds.testing.simulation.injected import DrawnFaults, FaultKind
from icebergds.testing.simulation.places import NAME, Place
from icebergds.testing.simulation.rows import CORE, GROUP, Then, put, without_matching
from icebergds.testing.simulation.steps import (
    GROUPS,
    Outcome,
    Shared,
    Step,
    arrow_rows,
    new_keys,
    new_rows,
)
from icebergds.testing.simulation.writers import condition_of

PYICEBERG = "pyiceberg"
_CATALOGS = ("sql", "rest")
_FILES = "icebergds.testing.simulation.pyiceberg_files"
# Not tried: a conflict of PyIceberg's commit with itself.
_NEVER = frozenset({FaultKind.OWN_CONFLICT})
# What PyIceberg has not, as it says.
_REFUSALS = (
    "Cannot write manifest for table version: 3",
    "Writing V3 is not yet supported",
    "does not yet support equality deletes",
    "No writer registered for FileFormat",
    "Unsupported file format: FileFormat",
    "Cannot have redundant partitions",
)
# What it says of a commit to another branch that came first, instead of committing again.
_CONFLICTS = ("Cannot add snapshot with sequence number",)


@dataclass(frozen=True, slots=True)
class PyIcebergGuest:
    """PyIceberg; see `Guest`."""

    weight: int = 40
    modules: tuple[str, ...] = (
        "pyiceberg.table",
        "pyiceberg.table.snapshots",
        "pyiceberg.utils.concurrent",
    )

    @contextmanager
    def opened(self, place: Place) -> Iterator[GuestAct]:
        """Opens the place's catalog by PyIceberg.

        Raises:
            InvalidOptionError: PyIceberg is not installed, or has no such catalog or storage.
        """
        _check(place)
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.concurrent import ExecutorFactory

        given = {**place.properties, "py-io-impl": f"{_FILES}.SimulatedPyArrowFileIO"}
        with (
            mock.patch.object(ExecutorFactory, "_instance", InlineExecutor()),
            mock.patch.object(ExecutorFactory, "_instance_pid", os.getpid()),
            warnings.catch_warnings(),
            load_catalog(NAME, **given) as catalog,
        ):
            # It warns of deletes that match nothing, and of those that copy files.
            warnings.simplefilter("ignore")
            yield _Actor(catalog).act


@dataclass(frozen=True, slots=True)
class _Actor:
    catalog: Any

    def act(self, step: Step, place: Place, shared: Shared, faults: DrawnFaults) -> int | None:
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        from icebergds.testing.simulation.pyiceberg_files import StorageOfProcess, storage_of

        faults.never = _NEVER
        process = StorageOfProcess(place, faults)
        try:
            with storage_of(process):
                catalog = _CatalogOfProcess(self.catalog, process)
                return _change(step, catalog.load_table(place.identifier), shared)
        except GuestError:
            raise
        except (CommitFailedException, ValidationException) as error:
            raise GuestError(error, Outcome.FAILED, is_expected=True) from error
        except Exception as error:
            if any(text in str(error) for text in _REFUSALS):
                raise GuestError(error, Outcome.REFUSED, is_expected=True) from error
            if any(text in str(error) for text in _CONFLICTS):
                raise GuestError(error, Outcome.FAILED, is_expected=True) from error
            # What else it raises says nothing of the commit.
            raise GuestError(error, Outcome.UNKNOWN, is_expected=False) from error


class _CatalogOfProcess:
    """PyIceberg's catalog as a process sees it: its answers may be lost or come late."""

    def __init__(self, catalog: Any, process: Any) -> None:
        self._catalog, self._process = catalog, process
        self._spec_id: int | None = None

    def load_table(self, identifier: Any) -> Any:
        from pyiceberg.exceptions import ValidationException

        table = self._process.around("refresh", lambda: self._catalog.load_table(identifier))
        table.catalog = self
        if self._spec_id not in (None, table.spec().spec_id):
            # PyIceberg would commit files with partitions of the former spec as some of the new.
            raise ValidationException("the partitions have changed since the files were written")
        self._spec_id = table.spec().spec_id
        return table

    def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

        def commit() -> Any:
            return self._catalog.commit_table(table, requirements, updates)

        try:
            return self._process.around("commit", commit)
        except CommitConflictError as error:
            raise CommitFailedException(str(error)) from error
        except CommitStateUnknownError as error:
            raise CommitStateUnknownException(str(error)) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def _check(place: Place) -> None:
    try:
        import pyiceberg  # noqa: F401
    except ImportError as error:
        raise InvalidOptionError(
            f"actor {PYICEBERG!r} needs PyIceberg: pip install 'pyiceberg[sql-sqlite]', or leave "
            "the actor out"
        ) from error
    if place.properties["type"] not in _CATALOGS:
        raise InvalidOptionError(
            f"actor {PYICEBERG!r} needs a catalog of type {' or '.join(_CATALOGS)}, not "
            f"{place.properties['type']!r}"
        )
    if place.properties["warehouse"].startswith("memory:"):
        raise InvalidOptionError(
            f"actor {PYICEBERG!r} needs a storage that PyIceberg has, not memory"
        )


def _change(step: Step, table: Any, shared: Shared) -> int | None:
    """Appends, deletes or overwrites; returns the snapshot that PyIceberg has committed."""
    if "encryption.key-id" in table.properties:
        # It would write files in clear before it cannot read the manifests.
        refused = NotImplementedError("PyIceberg does not know encrypted tables")
        raise GuestError(refused, Outcome.REFUSED, is_expected=True) from refused
    branches = sorted(name for name in table.refs() if name.startswith("branch"))
    if branches and step.chance.random() < 0.25:
        step.branch = step.chance.choice(branches)
    kind = step.chance.choice([_append, _append, _delete, _overwrite])
    kind(step, table, shared)
    committed = table.snapshot_by_name(step.branch)
    is_own = committed is not None and committed.summary.additional_properties.items() >= (
        step.summary.items()
    )
    return int(committed.snapshot_id) if is_own else None


def _append(step: Step, table: Any, shared: Shared) -> None:
    rows = new_rows(step, _schema_of(table), new_keys(step, step.chance.randint(1, 8)))
    step.detail = f"append {len(rows)} rows"
    step.effect = put(rows)
    table.append(_arrow(rows, table), snapshot_properties=step.summary, branch=step.branch)


def _delete(step: Step, table: Any, shared: Shared) -> None:
    condition, matches = condition_of(step, shared)
    step.detail = f"delete {step.detail}"
    # Whole files go in one snapshot, the rows of others in the next.
    step.snapshots, step.in_parts = 2, True
    step.effect = without_matching(matches)
    table.delete(condition, snapshot_properties=step.summary, branch=step.branch)


def _overwrite(step: Step, table: Any, shared: Shared) -> None:
    group = step.chance.randrange(1, GROUPS)
    rows = new_rows(step, _schema_of(table), new_keys(step, step.chance.randint(1, 4)))
    rows = [{**row, CORE.group: group} for row in rows]
    step.detail = f"overwrite group {group} with {len(rows)} rows"
    step.snapshots, step.in_parts = 3, True
    step.effect = Then(without_matching(lambda row: row[CORE.group] == group), put(rows))
    table.overwrite(
        _arrow(rows, table),
        f"{GROUP} = {group}",
        snapshot_properties=step.summary,
        branch=step.branch,
    )


def _schema_of(table: Any) -> Schema:
    return schema_from_json(json.loads(table.schema().model_dump_json()))


def _arrow(rows: Any, table: Any) -> pa.Table:
    """Rows with the types and the required columns of the table."""
    schema = _schema_of(table)
    given = arrow_rows(rows, schema)
    required = {column.name for column in schema.fields if column.required}
    fields = [field.with_nullable(field.name not in required) for field in given.schema]
    return given.cast(pa.schema(fields))
