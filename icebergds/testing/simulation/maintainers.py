"""Steps that change no row: maintenance, expiry, columns, partitions, references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.api.table import Table
from icebergds.spec.snapshot import MAIN_BRANCH, RefType
from icebergds.spec.values.dates import now_ms
from icebergds.testing.simulation.rows import CORE, GROUP, ID, unchanged
from icebergds.testing.simulation.steps import Act, Shared, Step

_CORE = frozenset({CORE.key, CORE.group, CORE.value})


def compact(step: Step, table: Table, shared: Shared) -> Any:
    options = {"min-input-files": "2", "delete-file-threshold": "1"}
    if step.chance.random() < 0.4:
        options = {"rewrite-all": "true"}
    if step.chance.random() < 0.3:
        options |= {"partial-progress.enabled": "true", "partial-progress.max-commits": "3"}
    if step.chance.random() < 0.3:
        options["remove-dangling-deletes"] = "true"
    if step.chance.random() < 0.3:
        options["use-starting-sequence-number"] = "false"
    step.detail = f"rewrite data files {options}"
    return table.rewrite_data_files(
        branch=step.branch, options=options, snapshot_properties=_unchanging(step), progress=False
    )


def convert(step: Step, table: Table, shared: Shared) -> Any:
    step.detail = "convert equality deletes"
    return table.convert_equality_deletes(
        branch=step.branch, snapshot_properties=_unchanging(step), progress=False
    )


def rewrite_deletes(step: Step, table: Table, shared: Shared) -> Any:
    step.detail = "rewrite position deletes"
    return table.rewrite_position_delete_files(
        branch=step.branch,
        options={"rewrite-all": "true"},
        snapshot_properties=_unchanging(step),
        progress=False,
    )


def remove_dangling(step: Step, table: Table, shared: Shared) -> Any:
    step.detail = "remove dangling deletes"
    return table.remove_dangling_deletes(
        branch=step.branch, snapshot_properties=_unchanging(step), progress=False
    )


def rewrite_manifests(step: Step, table: Table, shared: Shared) -> Any:
    step.detail = "rewrite manifests"
    return table.rewrite_manifests(
        branch=step.branch, snapshot_properties=_unchanging(step), progress=False
    )


def maintain(step: Step, table: Table, shared: Shared) -> Any:
    step.detail = "maintain"
    return table.maintain(branch=step.branch, snapshot_properties=_unchanging(step), progress=False)


def expire(step: Step, table: Table, shared: Shared) -> Any:
    age_ms, kept = step.chance.randrange(600_000), step.chance.randint(1, 4)
    cleans = step.chance.random() < 0.4
    step.detail = f"expire snapshots older than {age_ms} ms, but {kept}"
    return table.expire_snapshots(
        now_ms() - age_ms, kept, clean_expired_metadata=cleans, progress=False
    )


def evolve_columns(step: Step, table: Table, shared: Shared) -> Any:
    others = [column for column in table.schema().fields if column.field_id not in _CORE]
    kind = step.chance.choice(["add", "add", "rename", "drop", "promote"])
    if kind == "add" or not others:
        if len(others) > 4:
            return None
        name = f"c{step.number}"
        step.detail = f"add column {name}"
        given: dict[str, Any] = {}
        kind = step.chance.choice(["int", "bigint", "string"])
        if table.metadata.format_version >= 3 and step.chance.random() < 0.5:
            given["default_value"] = "text" if kind == "string" else 7
        with table.update_schema() as update:
            update.add_column(name, kind, **given)
        return None
    column = step.chance.choice(others)
    step.detail = f"{kind} column {column.name}"
    with table.update_schema() as update:
        if kind == "rename":
            update.rename_column(column.name, f"r{step.number}")
        elif kind == "drop":
            update.delete_column(column.name)
        elif str(column.field_type) == "int":
            update.update_column(column.name, "bigint")
    return None


def evolve_partitions(step: Step, table: Table, shared: Shared) -> Any:
    names = [part.name for part in table.spec().fields]
    with table.update_spec() as update:
        if names and step.chance.random() < 0.5:
            step.detail = f"remove partition field {names[0]}"
            update.remove_field(names[0])
            return None
        term = step.chance.choice([GROUP, f"bucket(3, {ID})", f"truncate(10, {ID})"])
        step.detail = f"add partition field {term}"
        update.add_field(term)
    return None


def set_properties(step: Step, table: Table, shared: Shared) -> Any:
    name, values = step.chance.choice(PROPERTIES)
    value = step.chance.choice(values)
    step.detail = f"set {name} = {value}"
    table.set_properties({name: value})


def upgrade(step: Step, table: Table, shared: Shared) -> Any:
    version = table.metadata.format_version
    step.detail = f"upgrade from version {version}"
    if version < 3:
        table.upgrade(version + 1)


def change_references(step: Step, table: Table, shared: Shared) -> Any:
    step.moves_references = True
    refs = table.refs()
    branches = [n for n, ref in refs.items() if ref.ref_type is RefType.BRANCH and n != MAIN_BRANCH]
    tags = [name for name, ref in refs.items() if ref.ref_type is RefType.TAG]
    kinds = ["tag", *(["branch"] if len(branches) < 2 else []), *(["drop"] if branches else [])]
    kinds += [*(["forward", "reset"] if branches else []), *(["untag"] * 2 if tags else [])]
    kind = step.chance.choice(kinds)
    with table.manage_snapshots() as manage:
        match kind:
            case "tag":
                manage.create_tag(f"tag{step.number}")
            case "branch":
                manage.create_branch(f"branch{step.number}")
            case "untag":
                manage.remove_tag(step.chance.choice(tags))
            case "drop":
                manage.remove_branch(step.chance.choice(branches))
            case "forward":
                manage.fast_forward(step.chance.choice(branches), MAIN_BRANCH)
            case _:
                manage.replace_branch(step.chance.choice(branches), MAIN_BRANCH)
        step.detail = f"{kind} of a branch or tag"
    return None


def publish(step: Step, table: Table, shared: Shared) -> Any:
    if not shared.staged:
        return None
    name = step.chance.choice(shared.staged)
    step.detail, step.moves_references = f"publish {name}", True
    with table.manage_snapshots() as manage:
        manage.publish_changes(name)
    return None


def compute_statistics(step: Step, table: Table, shared: Shared) -> Any:
    step.detail = "compute statistics"
    if step.chance.random() < 0.5:
        table.compute_partition_stats()
    else:
        table.compute_table_stats()


def roll_back(step: Step, table: Table, shared: Shared) -> Any:
    metadata = table.metadata
    history = metadata.lineage(metadata.current_snapshot())[1:4]
    if not history:
        return None
    target = step.chance.choice(history)
    step.detail = f"roll back to snapshot {target.snapshot_id}"
    step.moves_references = True
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(target.snapshot_id)
    return None


def _unchanging(step: Step) -> dict[str, str]:
    step.effect, step.snapshots, step.keeps_ids = unchanged, None, True
    return step.summary


PROPERTIES: list[tuple[str, list[str]]] = [
    ("write.format.default", ["parquet", "parquet", "avro", "orc"]),
    ("write.delete.mode", ["copy-on-write", "merge-on-read"]),
    ("write.update.mode", ["copy-on-write", "merge-on-read"]),
    ("write.merge.mode", ["copy-on-write", "merge-on-read"]),
    ("write.delete.granularity", ["file", "partition"]),
    ("commit.manifest.min-count-to-merge", ["2", "3", "100"]),
    ("commit.manifest-merge.enabled", ["true", "false"]),
    ("commit.retry.num-retries", ["1", "4", "10"]),
    ("write.metadata.delete-after-commit.enabled", ["true", "false"]),
    ("write.metadata.previous-versions-max", ["1", "3", "100"]),
]
"""Properties that a table may have, with their values."""

MAINTAINERS: Mapping[str, tuple[Act, int]] = {
    "compaction": (compact, 8),
    "conversion": (convert, 5),
    "rewritten deletes": (rewrite_deletes, 3),
    "dangling deletes": (remove_dangling, 2),
    "manifests": (rewrite_manifests, 3),
    "maintenance": (maintain, 2),
    "expiry": (expire, 6),
    "columns": (evolve_columns, 3),
    "partitions": (evolve_partitions, 2),
    "properties": (set_properties, 2),
    "upgrade": (upgrade, 1),
    "references": (change_references, 4),
    "publishing": (publish, 3),
    "statistics": (compute_statistics, 1),
    "rollback": (roll_back, 2),
}
"""The steps by their actors, and how often each is drawn."""
