"""Names what to use instead of options of Delta Lake, of Spark's sources or of the other side."""

from __future__ import annotations

_WRITES = {
    "replaceWhere": "'overwrite-filter'",
    "partitionOverwriteMode": "'overwrite-mode' = 'dynamic' or 'static'",
    "dynamicPartitionOverwrite": "'overwrite-mode' = 'dynamic'",
    "overwriteSchema": (
        "'merge-schema', which adds columns and widens types; to replace the schema, create "
        "another table"
    ),
    "txnAppId": "'txn-app-id'",
    "txnVersion": "'txn-version'",
    "userMetadata": "'snapshot-property.<key>' or 'snapshot-properties', a JSON object",
    "maxRecordsPerFile": "'target-file-size-bytes'",
    "optimizeWrite": "'distribution-mode'",
    "compression": "'compression-codec'",
}
_READS = {
    "readChangeFeed": "'changes'",
    "readChangeData": "'changes'",
    "maxFilesPerTrigger": "'streaming-max-files-per-micro-batch'",
    "maxBytesPerTrigger": "'streaming-max-rows-per-micro-batch'",
    "ignoreDeletes": "'streaming-skip-delete-snapshots'",
    "ignoreChanges": "'streaming-skip-overwrite-snapshots'",
    "skipChangeCommits": (
        "'streaming-skip-overwrite-snapshots' and 'streaming-skip-delete-snapshots'"
    ),
    "failOnDataLoss": "'stream-on-expired'",
}
_OWN = {name.lower(): own for name, own in (_WRITES | _READS).items()}
_OF_WRITES = {
    "mergeschema",
    *(name.lower() for name in _WRITES),
    "create",
    "create-branch",
    "wap.id",
    "wap.branch",
    "txn-app-id",
    "txn-version",
    "overwrite-mode",
    "overwrite-filter",
    "merge-schema",
    "write-format",
    "target-file-size-bytes",
    "compression-codec",
    "compression-level",
    "shred-variants",
    "variant-inference-buffer-size",
    "fanout-enabled",
    "distribution-mode",
    "use-table-distribution-and-ordering",
    "partition-by",
    "sort-by",
    "location",
    "format-version",
    "snapshot-properties",
    "table-properties",
    "write-operation",
    "upsert-keys",
    "upsert-order-by",
    "row-kind-column",
    "validate-from-snapshot-id",
}
_OF_READS = {
    "versionasof",
    "timestampasof",
    *(name.lower() for name in _READS),
    "metadata-table",
    "snapshot-id",
    "as-of-timestamp",
    "tag",
    "columns",
    "filter",
    "split-size",
    "lookback",
    "file-open-cost",
    "batch-size",
    "delete-cache-bytes",
    "pushdown",
    "wrong-counts",
    "read-change-feed",
    "changes",
    "startingversion",
    "endingversion",
    "startingtimestamp",
    "endingtimestamp",
    "start-snapshot-id",
    "end-snapshot-id",
}


_OF_STREAMS = {
    "maintain-every",
    "maintain-max-seconds",
    "maintain-max-bytes",
    "on-missing-batches",
}


def own_option(name: str, *, is_write: bool) -> str:
    """The hint of an unknown-option message: what to use instead; empty if that is not known.

    Args:
        name: the unknown option, in lower case.
        is_write: whether it was given to a write, rather than to a read.
    """
    if name in _OF_STREAMS:
        after = "; after a batch write, call table.maintain()" if "maintain" in name else ""
        return f"it is an option of streaming queries that write (writeStream){after}"
    if name in (_OF_READS if is_write else _OF_WRITES):
        what = "reads" if is_write else "writes"
        return f"it is an option of {what}" + (f": use {_OWN[name]}" if name in _OWN else "")
    return f"use {_OWN[name]}" if name in _OWN else ""
