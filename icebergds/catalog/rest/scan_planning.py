"""Lets the server plan scans (REST catalog specification: /plan and /tasks)."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.config import CANCEL_PLAN, FETCH_PLAN, FETCH_TASKS, PLAN_SCAN
from icebergds.catalog.rest.failures import RestError, refusals
from icebergds.catalog.rest.http import Request
from icebergds.catalog.rest.options import flag, integer
from icebergds.catalog.rest.session import RestSession
from icebergds.errors import (
    IcebergError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchTableError,
    StorageError,
)
from icebergds.expr.bind import field_ids
from icebergds.expr.json import filter_to_json
from icebergds.expr.nodes import Expr
from icebergds.spec.json.content_file import content_file_from_json
from icebergds.spec.json.fields import integers, optional, required, strings, typed
from icebergds.spec.manifest import DataFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.types import StructType

_LOG = logging.getLogger(__name__)
_MODE = "scan-planning-mode"
_ENABLED = "rest-scan-planning-enabled"
_POLL_TIMEOUT = "rest-scan-planning.poll-timeout-ms"
_POLL_TIMEOUT_MS = 300_000
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0

PlannedFiles = list[tuple[DataFile, tuple[DataFile, ...]]]
"""Data files, each with its delete files."""


def check_planning(session: RestSession) -> None:
    """Checks the properties of a catalog that decide who plans scans.

    Raises:
        InvalidOptionError: a property is malformed.
        UnsupportedFeatureError: the server should plan, but does not support it.
    """
    if _by_server(session, session.config.properties):
        _require(session)
    _poll_timeout_ms(session)


def scan_planner(
    session: RestSession, identifier: Identifier, name: str, config: Mapping[str, str]
) -> RestScanPlanner | None:
    """Plans scans of a table on the server; None if this process plans them.

    Args:
        name: the table's name in messages.
        config: of the table; it overrides the properties of the catalog.

    Errors are those of `check_planning`.
    """
    if not _by_server(session, {**session.config.properties, **config}):
        return None
    _require(session)
    return RestScanPlanner(session, identifier, name)


@dataclass(frozen=True, slots=True)
class RestScanPlanner:
    """Implements `ServerPlanner`; other processes, which have no session, get None."""

    session: RestSession
    identifier: Identifier
    name: str

    def plan(
        self, snapshot_id: int, row_filter: Expr, schema: Schema, metadata: TableMetadata
    ) -> PlannedFiles:
        """Implements `ServerPlanner.plan`."""
        started = time.perf_counter()
        names = (schema.find_name(field_id) for field_id in sorted(field_ids(row_filter)))
        body = {
            "snapshot-id": snapshot_id,
            "filter": filter_to_json(row_filter, schema),
            "case-sensitive": True,
            "use-snapshot-schema": True,
            "stats-fields": [name for name in names if name is not None],
        }
        with refusals({404: self._missing}):
            answer = self._post(self.session.routes.plans(self.identifier), body)
            found = self._completed(answer)
            types = {
                spec.spec_id: metadata.partition_type(spec) for spec in metadata.partition_specs
            }
            files = self._files(found, types)
        _LOG.info(
            "table %s: the server planned snapshot %d in %.0f ms: %d data files",
            self.name,
            snapshot_id,
            1000 * (time.perf_counter() - started),
            len(files),
        )
        return files

    def _completed(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer for a completed plan; polls until it has completed.

        Raises StorageError if it fails, is cancelled or takes too long.
        """
        plan_id = optional(answer, "plan-id", str, self._where)
        if not self._is_running(answer):
            return answer
        if plan_id is None:
            raise InvalidMetadataError(f"{self._where} is a plan that runs, but lacks 'plan-id'")
        session = self.session
        limit = _poll_timeout_ms(session)
        deadline = time.monotonic() + limit / 1000
        wait = _FIRST_WAIT_S
        try:
            while self._is_running(answer):
                if time.monotonic() > deadline:
                    raise StorageError(
                        f"table {self.name}: the server has not planned the scan in "
                        f"{limit} ms ({_POLL_TIMEOUT}); plan it in this "
                        f"process ({_MODE} = client)"
                    )
                time.sleep(wait * random.uniform(0.75, 1.25))
                wait = min(2 * wait, _LONGEST_WAIT_S)
                answer = session.client.get(session.routes.plan(self.identifier, plan_id)).body
        except BaseException:
            self._cancel(plan_id)
            raise
        return answer

    def _is_running(self, answer: Mapping[str, Any]) -> bool:
        status = required(answer, "status", str, self._where).lower()
        if status in ("completed", "submitted"):
            return status == "submitted"
        error = optional(answer, "error", dict, self._where) or {}
        why = error.get("message") or "it gives no reason"
        raise StorageError(
            f"table {self.name}: the server's plan of the scan has the status {status!r}: {why}"
        )

    def _files(self, answer: Mapping[str, Any], types: Mapping[int, StructType]) -> PlannedFiles:
        """The files in an answer, and in its further tasks."""
        found: PlannedFiles = []
        waiting, seen = [answer], set()
        while waiting:
            part = waiting.pop()
            found += self._listed(part, types)
            for task in strings(part, "plan-tasks", self._where):
                if task not in seen:
                    seen.add(task)
                    path = self.session.routes.tasks(self.identifier)
                    waiting.append(self._post(path, {"plan-task": task}))
        return found

    def _listed(self, answer: Mapping[str, Any], types: Mapping[int, StructType]) -> PlannedFiles:
        def objects(name: str) -> Sequence[Mapping[str, Any]]:
            members = optional(answer, name, list, self._where) or ()
            return [typed(each, dict, f"a member of {name!r} of {self._where}") for each in members]

        deletes = [
            content_file_from_json(each, types, self._where) for each in objects("delete-files")
        ]
        vectors = {
            each.referenced_data_file: each
            for each in deletes
            if each.is_deletion_vector and each.referenced_data_file is not None
        }
        found = []
        for task in objects("file-scan-tasks"):
            data = required(task, "data-file", dict, self._where)
            places = integers(task, "delete-file-references", self._where)
            if any(not 0 <= place < len(deletes) for place in places):
                raise InvalidMetadataError(
                    f"{self._where} refers to the delete files {list(places)}, but has only "
                    f"{len(deletes)}"
                )
            file = content_file_from_json(data, types, self._where)
            found.append((file, self._applied(file, [deletes[i] for i in places], vectors)))
        return found

    def _applied(
        self, file: DataFile, referred: Sequence[DataFile], vectors: Mapping[str, DataFile]
    ) -> tuple[DataFile, ...]:
        """The delete files of a data file.

        Deletion vectors are matched by the data file that they reference: servers that identify
        delete files only by path may refer to any vector in a file.

        Args:
            vectors: the listed deletion vectors, by data file.

        Raises:
            InvalidMetadataError: the vector that the file needs is not listed.
        """
        others = [each for each in referred if not each.is_deletion_vector]
        vector = vectors.get(file.file_path)
        if vector is None and len(others) < len(referred):
            raise InvalidMetadataError(
                f"{self._where} refers to a deletion vector for {file.file_path}, but lists none "
                f"of it; plan scans in this process ({_MODE} = client)"
            )
        return tuple(others) if vector is None else (vector, *others)

    def _post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            # It changes nothing, so it can be retried.
            return self.session.client.send(Request("POST", path, body=body, repeatable=True)).body
        except RestError as error:
            error.maybe_done = False
            raise

    def _cancel(self, plan_id: str) -> None:
        session = self.session
        if not session.config.supports(session.name, CANCEL_PLAN):
            return
        path = session.routes.plan(self.identifier, plan_id)
        with suppress(IcebergError):
            session.client.send(Request("DELETE", path, answered=False))

    def _missing(self, error: RestError) -> IcebergError:
        if error.kind == "NoSuchTableException":
            return NoSuchTableError(f"table {self.name} does not exist in its catalog")
        return error

    @property
    def _where(self) -> str:
        return f"the plan of a scan of table {self.name}"

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def _by_server(session: RestSession, properties: Mapping[str, str]) -> bool:
    default = "server" if flag(session.name, properties, _ENABLED, False) else "client"
    mode = properties.get(_MODE, default).lower()
    if mode not in ("client", "server"):
        raise InvalidOptionError(
            f"catalog {session.name}: {_MODE} is {mode!r}, expected client or server"
        )
    return mode == "server"


def _poll_timeout_ms(session: RestSession) -> int:
    return integer(session.name, session.config.properties, _POLL_TIMEOUT, _POLL_TIMEOUT_MS)


def _require(session: RestSession) -> None:
    for endpoint in (PLAN_SCAN, FETCH_PLAN, FETCH_TASKS):
        session.config.require(session.name, endpoint, "planning scans")
