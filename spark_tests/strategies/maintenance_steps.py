"""Maintenance actions with random options, on a table of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from strategies.small_values import filters

from icebergds.api.table import Table
from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_text import sql_text
from icebergds.spec.snapshot import RefType

Draw = Callable[[st.SearchStrategy[Any]], Any]

_SIZES = st.sampled_from(["300", "1000", "3000", "100000"])
_BOOLEANS = st.sampled_from(["true", "false"])
_FILES = st.sampled_from(["1", "2", "3", "100"])
_ORDERS = st.sampled_from(["none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"])
_REWRITE = {
    "rewrite-all": _BOOLEANS,
    "target-file-size-bytes": _SIZES,
    "max-file-group-input-files": _FILES,
    "max-file-group-size-bytes": _SIZES,
    "min-input-files": _FILES,
    "partial-progress.enabled": _BOOLEANS,
    "partial-progress.max-commits": _FILES,
    "rewrite-job-order": _ORDERS,
}
_REWRITE_DATA = _REWRITE | {
    "delete-file-threshold": _FILES,
    "delete-ratio-threshold": st.sampled_from(["0.1", "1"]),
    "use-starting-sequence-number": _BOOLEANS,
    "max-files-to-rewrite": _FILES,
    "remove-dangling-deletes": _BOOLEANS,
}
_FORMATS = st.sampled_from(["parquet", "orc", "avro"])
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "write.format.default": _FORMATS,
        "write.delete.format.default": _FORMATS,
        "write.delete.granularity": st.sampled_from(["file", "partition"]),
        "write.parquet.row-group-size-bytes": st.sampled_from(["1", "1000"]),
        "commit.manifest.target-size-bytes": st.sampled_from(["300", "8388608"]),
    },
)
"""Properties that say how maintenance writes files."""
_ONE_GROUP = {"max-concurrent-file-group-rewrites": "1"}
# A struct without stored fields, and early timestamps.
_NOT_STORED = ("cannot store a struct without fields", "cannot be written to ORC")
_FAR_AHEAD_MS = 4_000_000_000_000


def maintain(draw: Draw, table: Table) -> None:
    """One random action on a random branch; nothing if its files cannot hold the rows."""
    branches = [name for name, ref in table.refs().items() if ref.ref_type is RefType.BRANCH]
    actions = [_upgrade, _expire]
    if branches:
        branch = draw(st.sampled_from(sorted(branches)))
        actions += [_rewrite] * 4 + [_rewrite_deletes, _convert] * 2 + [_dangling, _manifests]
    else:
        branch = "main"
    try:
        draw(st.sampled_from(actions))(draw, table, branch)
    except UnsupportedFeatureError as error:
        if not any(words in str(error) for words in _NOT_STORED):
            raise


def _rewrite(draw: Draw, table: Table, branch: str) -> None:
    known = table.schema().fields_by_id
    # A spec whose column was dropped is refused.
    usable = [
        str(spec_id)
        for spec_id, spec in table.metadata.specs_by_id.items()
        if all(field.source_id in known for field in spec.fields)
    ]
    chosen = {"output-spec-id": st.sampled_from(usable)} if usable else {}
    options = _options(draw, _REWRITE_DATA | chosen)
    table.rewrite_data_files(where=_where(draw, table), branch=branch, options=options)


def _rewrite_deletes(draw: Draw, table: Table, branch: str) -> None:
    where, options = _where(draw, table), _options(draw, _REWRITE)
    table.rewrite_position_delete_files(where, branch=branch, options=options)


def _convert(draw: Draw, table: Table, branch: str) -> None:
    chosen = {
        "split-size": _SIZES,
        "batch-size": _FILES,
        "delete-cache-bytes": st.sampled_from(["0", "100"]),
    }
    where, options = _where(draw, table), draw(st.fixed_dictionaries({}, optional=chosen))
    table.convert_equality_deletes(where, branch=branch, options=options)


def _dangling(draw: Draw, table: Table, branch: str) -> None:
    table.remove_dangling_deletes(branch=branch)


def _manifests(draw: Draw, table: Table, branch: str) -> None:
    spec = table.metadata.specs_by_id[draw(st.sampled_from(list(table.metadata.specs_by_id)))]
    names = [field.name for field in spec.fields]
    sort_by = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    table.rewrite_manifests(spec.spec_id, sort_by or None, branch=branch)


def _expire(draw: Draw, table: Table, branch: str) -> None:
    table.expire_snapshots(
        _FAR_AHEAD_MS,
        retain_last=draw(st.integers(1, 3)),
        clean_expired_metadata=draw(st.booleans()),
    )


def _upgrade(draw: Draw, table: Table, branch: str) -> None:
    table.upgrade(min(table.metadata.format_version + 1, 3))


def _where(draw: Draw, table: Table) -> str | None:
    """A condition on any columns, or none."""
    if draw(st.integers(0, 2)):
        return None
    return sql_text(draw(filters(table.schema())), table.schema())


def _options(draw: Draw, chosen: Mapping[str, st.SearchStrategy[str]]) -> dict[str, str]:
    options = draw(st.fixed_dictionaries({}, optional=dict(chosen)))
    # More often than not, or small files are few enough to be left alone.
    return {**_ONE_GROUP, **({"rewrite-all": "true"} if draw(st.booleans()) else {}), **options}
