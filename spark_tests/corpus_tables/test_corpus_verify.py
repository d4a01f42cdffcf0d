"""A verification of tables of other engines finds what is wrong with them, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import corpus_dir, corpus_tables, location_map

from icebergds import load_table
from icebergds.operations.maintenance.verify.findings import FindingKind

_REWRITTEN = {FindingKind.FILE_SIZE}
"""Files that a tool has rewritten since, with other paths; manifests keep their sizes."""

_ABSENT = {FindingKind.MISSING_FILE}
"""Only some files of the table were published."""

_DANGLING = {FindingKind.DANGLING_DELETES}

_WRONG: dict[str, set[FindingKind]] = {
    # Java's appends of whole manifests leave `total-files-size` as it was before.
    "dremio/internal_metadata_inconsistent_partitions": {
        FindingKind.PARTITION_SUMMARY,
        FindingKind.SNAPSHOT_TOTALS,
    }
    | _REWRITTEN,
    # Its generator lists one manifest as it was when it held all files of the table.
    "duckdb-iceberg-hist/large_partitioned_table": {
        FindingKind.MANIFEST_COUNTS,
        FindingKind.SEQUENCE_NUMBERS,
        FindingKind.SNAPSHOT_TOTALS,
    }
    | _REWRITTEN,
    "duckdb-iceberg-hist/partition_timestamp_ns": _REWRITTEN,
    "duckdb-iceberg/column_mapping_my_table": _ABSENT,
    "duckdb-iceberg/hive_partitioned_table": _REWRITTEN,
    "duckdb-iceberg/partition_time": _REWRITTEN,
    "duckdb-iceberg/partition_timestamp": _REWRITTEN,
    "duckdb-iceberg/partition_timestamptz": _REWRITTEN,
    "ecs-duckdb/struct_filter_issue": _REWRITTEN,
    "gluten/test_upsert_query": _DANGLING,
    "iceberg-cxx/partitioned_table_with_missing_spec": _ABSENT,
    "iceberg-cxx/partitioned_table_with_multiple_spec": _ABSENT,
    "icebird/spark_bunnies": _DANGLING,
    "impala-hist/iceberg_avro_mixed": _REWRITTEN,
    "impala-hist/iceberg_avro_only": _REWRITTEN,
    # Its manifest has other sizes than its summary.
    "impala/iceberg_legacy_partition_schema_evolution_orc": {
        FindingKind.SNAPSHOT_CHANGES,
        FindingKind.SNAPSHOT_TOTALS,
    },
    # Lists files of position deletes as equality deletes.
    "impala-hist/iceberg_v2_delete_different_equality_ids": {FindingKind.FILE_COLUMNS},
    # Rows of position deletes name hdfs://host/..., their bounds and the data files /... .
    "impala/iceberg_spark_compaction_with_dangling_delete": {FindingKind.BOUNDS} | _DANGLING,
    "impala/iceberg_v2_delete_pos_and_multi_eq_ids": {FindingKind.BOUNDS} | _DANGLING,
    "pg_lake/spark_generated_iceberg_test_2": _ABSENT,
}


@pytest.mark.parametrize("depth", ["footers", "rows"])
@pytest.mark.parametrize("known", corpus_tables(), ids=lambda known: known["id"])
def test_only_what_is_wrong_is_found(known: dict[str, Any], depth: str) -> None:
    table = load_table(str(corpus_dir() / known["metadata"]), location_map=location_map(known))
    result = table.verify(depth)
    assert set(result.by_kind()) == _WRONG.get(known["id"], set()), result
