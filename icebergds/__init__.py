"""Reads and writes Apache Iceberg tables in PySpark, in pure Python, without a JVM jar.

spark.read.format("icebergpy").load("s3://bucket/warehouse/db/events")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from icebergds.version import __version__ as __version__

if TYPE_CHECKING:
    from icebergds.api.catalog import Catalog, load_catalog
    from icebergds.api.catalog_transaction import CatalogTransaction
    from icebergds.api.delete_files import delete_reachable_files
    from icebergds.api.import_tables import MigratedTable, SnapshotTable, migrate, snapshot
    from icebergds.api.manage_snapshots import ManageSnapshots
    from icebergds.api.progress import progress
    from icebergds.api.scan import TableScan
    from icebergds.api.table import Table, Transaction, load_table
    from icebergds.api.table_statistics import UpdateStatistics
    from icebergds.api.update_layout import UpdateSortOrder, UpdateSpec
    from icebergds.api.update_schema import UpdateSchema
    from icebergds.api.view import View
    from icebergds.catalog.rest.failures import RestError
    from icebergds.errors import (
        AlreadyCommittedError,
        AlreadyExistsError,
        CommitConflictError,
        CommitStateUnknownError,
        CorruptFileError,
        FormatError,
        IcebergError,
        InvalidDataError,
        InvalidFilterError,
        InvalidMetadataError,
        InvalidOptionError,
        InvalidStatementError,
        MaintenanceError,
        MissingFileError,
        NamespaceNotEmptyError,
        NoSuchFunctionError,
        NoSuchNamespaceError,
        NoSuchSnapshotError,
        NoSuchTableError,
        NoSuchViewError,
        NotFoundError,
        StorageError,
        UnsupportedFeatureError,
        ValidationError,
    )
    from icebergds.operations.imports.add_files import AddedFiles
    from icebergds.operations.imports.rewrite_table_path import RewrittenTablePath
    from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
        ConvertedEqualityDeletes,
    )
    from icebergds.operations.maintenance.deletes.remove_dangling_deletes import (
        RemovedDanglingDeletes,
    )
    from icebergds.operations.maintenance.deletes.rewrite_position_deletes import (
        RewrittenPositionDeletes,
    )
    from icebergds.operations.maintenance.health.health import TableHealth
    from icebergds.operations.maintenance.policy import MaintenancePolicy
    from icebergds.operations.maintenance.purge.kept_files import KeptFiles
    from icebergds.operations.maintenance.purge.stored_rows import StoredFile, StoredRows
    from icebergds.operations.maintenance.report import (
        MaintenanceReport,
        MaintenanceStep,
    )
    from icebergds.operations.maintenance.rewrite.rewrite_data_files import RewrittenDataFiles
    from icebergds.operations.maintenance.rewrite_manifests import RewrittenManifests
    from icebergds.operations.maintenance.unused_files.delete_files import (
        DeletedReachableFiles,
    )
    from icebergds.operations.maintenance.unused_files.expire_snapshots import ExpiredSnapshots
    from icebergds.operations.maintenance.unused_files.orphan_files import OrphanFiles
    from icebergds.operations.maintenance.verify.findings import Finding
    from icebergds.operations.maintenance.verify.verification import TableVerification
    from icebergds.operations.read.difference import Difference
    from icebergds.operations.write.row_counts import RowCounts
    from icebergds.reporting import Progress
    from icebergds.spark.row_level.merge import MergeBuilder
    from icebergds.spec.functions import (
        FunctionDefinition,
        FunctionMetadata,
        FunctionParameter,
        FunctionVersion,
        SQLFunctionRepresentation,
    )
    from icebergds.spec.labels import Labels
    from icebergds.spec.partition import PartitionField, PartitionSpec
    from icebergds.spec.schema import Schema
    from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef
    from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
    from icebergds.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
    from icebergds.spec.transforms import (
        BucketTransform,
        DayTransform,
        HourTransform,
        IdentityTransform,
        MonthTransform,
        TruncateTransform,
        VoidTransform,
        YearTransform,
    )
    from icebergds.spec.views.metadata import (
        SQLViewRepresentation,
        ViewHistoryEntry,
        ViewMetadata,
        ViewVersion,
    )
    from icebergds.statements.changes import changes
    from icebergds.statements.registration import register, unregister
    from icebergds.statements.run import sql
    from icebergds.types import (
        BinaryType,
        BooleanType,
        DateType,
        DecimalType,
        DoubleType,
        FixedType,
        FloatType,
        GeographyType,
        GeometryType,
        IntegerType,
        ListType,
        LongType,
        MapType,
        NestedField,
        PrimitiveType,
        StringType,
        StructType,
        TimestampNanoType,
        TimestampType,
        TimestamptzNanoType,
        TimestamptzType,
        TimeType,
        UnknownType,
        UUIDType,
        VariantType,
    )

# Every Python worker of Spark imports this package, so names are imported on first use.
_NAMES = {
    "icebergds.api.catalog": (
        "Catalog",
        "load_catalog",
    ),
    "icebergds.api.catalog_transaction": ("CatalogTransaction",),
    "icebergds.api.delete_files": ("delete_reachable_files",),
    "icebergds.api.import_tables": (
        "MigratedTable",
        "SnapshotTable",
        "migrate",
        "snapshot",
    ),
    "icebergds.api.manage_snapshots": ("ManageSnapshots",),
    "icebergds.api.progress": ("progress",),
    "icebergds.api.scan": ("TableScan",),
    "icebergds.api.table": ("Table", "Transaction", "load_table"),
    "icebergds.api.update_layout": ("UpdateSortOrder", "UpdateSpec"),
    "icebergds.api.update_schema": ("UpdateSchema",),
    "icebergds.api.table_statistics": ("UpdateStatistics",),
    "icebergds.api.view": ("View",),
    "icebergds.catalog.rest.failures": ("RestError",),
    "icebergds.errors": (
        "AlreadyCommittedError",
        "AlreadyExistsError",
        "CommitConflictError",
        "CommitStateUnknownError",
        "CorruptFileError",
        "FormatError",
        "IcebergError",
        "InvalidDataError",
        "InvalidFilterError",
        "InvalidMetadataError",
        "InvalidOptionError",
        "InvalidStatementError",
        "MaintenanceError",
        "MissingFileError",
        "NamespaceNotEmptyError",
        "NoSuchFunctionError",
        "NoSuchNamespaceError",
        "NoSuchSnapshotError",
        "NoSuchTableError",
        "NoSuchViewError",
        "NotFoundError",
        "StorageError",
        "UnsupportedFeatureError",
        "ValidationError",
    ),
    "icebergds.operations.imports.add_files": ("AddedFiles",),
    "icebergds.operations.imports.rewrite_table_path": ("RewrittenTablePath",),
    "icebergds.operations.maintenance.rewrite.rewrite_data_files": ("RewrittenDataFiles",),
    "icebergds.operations.maintenance.deletes.remove_dangling_deletes": ("RemovedDanglingDeletes",),
    "icebergds.operations.maintenance.rewrite_manifests": ("RewrittenManifests",),
    "icebergds.operations.maintenance.unused_files.delete_files": ("DeletedReachableFiles",),
    "icebergds.operations.maintenance.unused_files.expire_snapshots": ("ExpiredSnapshots",),
    "icebergds.operations.maintenance.health.health": ("TableHealth",),
    "icebergds.operations.maintenance.verify.findings": ("Finding",),
    "icebergds.operations.maintenance.verify.verification": ("TableVerification",),
    "icebergds.operations.maintenance.policy": ("MaintenancePolicy",),
    "icebergds.operations.maintenance.purge.kept_files": ("KeptFiles",),
    "icebergds.operations.maintenance.purge.stored_rows": ("StoredFile", "StoredRows"),
    "icebergds.operations.maintenance.report": (
        "MaintenanceReport",
        "MaintenanceStep",
    ),
    "icebergds.operations.maintenance.unused_files.orphan_files": ("OrphanFiles",),
    "icebergds.operations.maintenance.deletes.convert_equality_deletes": (
        "ConvertedEqualityDeletes",
    ),
    "icebergds.operations.maintenance.deletes.rewrite_position_deletes": (
        "RewrittenPositionDeletes",
    ),
    "icebergds.operations.read.difference": ("Difference",),
    "icebergds.operations.write.row_counts": ("RowCounts",),
    "icebergds.reporting": ("Progress",),
    "icebergds.spark.row_level.merge": ("MergeBuilder",),
    "icebergds.spec.functions": (
        "FunctionDefinition",
        "FunctionMetadata",
        "FunctionParameter",
        "FunctionVersion",
        "SQLFunctionRepresentation",
    ),
    "icebergds.spec.labels": ("Labels",),
    "icebergds.spec.partition": (
        "PartitionField",
        "PartitionSpec",
    ),
    "icebergds.spec.schema": ("Schema",),
    "icebergds.spec.snapshot": ("RefType", "Snapshot", "SnapshotRef"),
    "icebergds.spec.sort": (
        "NullOrder",
        "SortDirection",
        "SortField",
        "SortOrder",
    ),
    "icebergds.spec.statistics": (
        "BlobMetadata",
        "PartitionStatisticsFile",
        "StatisticsFile",
    ),
    "icebergds.spec.transforms": (
        "BucketTransform",
        "DayTransform",
        "HourTransform",
        "IdentityTransform",
        "MonthTransform",
        "TruncateTransform",
        "VoidTransform",
        "YearTransform",
    ),
    "icebergds.spec.views.metadata": (
        "SQLViewRepresentation",
        "ViewHistoryEntry",
        "ViewMetadata",
        "ViewVersion",
    ),
    "icebergds.statements.changes": ("changes",),
    "icebergds.statements.registration": ("register", "unregister"),
    "icebergds.statements.run": ("sql",),
    "icebergds.types": (
        "BinaryType",
        "BooleanType",
        "DateType",
        "DecimalType",
        "DoubleType",
        "FixedType",
        "FloatType",
        "GeographyType",
        "GeometryType",
        "IntegerType",
        "ListType",
        "LongType",
        "MapType",
        "NestedField",
        "PrimitiveType",
        "StringType",
        "StructType",
        "TimeType",
        "TimestampNanoType",
        "TimestampType",
        "TimestamptzNanoType",
        "TimestamptzType",
        "UUIDType",
        "UnknownType",
        "VariantType",
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "AddedFiles",
    "AlreadyCommittedError",
    "AlreadyExistsError",
    "BinaryType",
    "BlobMetadata",
    "BooleanType",
    "BucketTransform",
    "Catalog",
    "CatalogTransaction",
    "CommitConflictError",
    "CommitStateUnknownError",
    "ConvertedEqualityDeletes",
    "CorruptFileError",
    "DateType",
    "DayTransform",
    "DecimalType",
    "DeletedReachableFiles",
    "Difference",
    "DoubleType",
    "ExpiredSnapshots",
    "Finding",
    "FixedType",
    "FloatType",
    "FormatError",
    "FunctionDefinition",
    "FunctionMetadata",
    "FunctionParameter",
    "FunctionVersion",
    "GeographyType",
    "GeometryType",
    "HourTransform",
    "IcebergError",
    "IdentityTransform",
    "IntegerType",
    "InvalidDataError",
    "InvalidFilterError",
    "InvalidMetadataError",
    "InvalidOptionError",
    "InvalidStatementError",
    "KeptFiles",
    "Labels",
    "ListType",
    "LongType",
    "MaintenanceError",
    "MaintenancePolicy",
    "MaintenanceReport",
    "MaintenanceStep",
    "ManageSnapshots",
    "MapType",
    "MergeBuilder",
    "MigratedTable",
    "MissingFileError",
    "MonthTransform",
    "NamespaceNotEmptyError",
    "NestedField",
    "NoSuchFunctionError",
    "NoSuchNamespaceError",
    "NoSuchSnapshotError",
    "NoSuchTableError",
    "NoSuchViewError",
    "NotFoundError",
    "NullOrder",
    "OrphanFiles",
    "PartitionField",
    "PartitionSpec",
    "PartitionStatisticsFile",
    "PrimitiveType",
    "Progress",
    "RefType",
    "RemovedDanglingDeletes",
    "RestError",
    "RewrittenDataFiles",
    "RewrittenManifests",
    "RewrittenPositionDeletes",
    "RewrittenTablePath",
    "RowCounts",
    "SQLFunctionRepresentation",
    "SQLViewRepresentation",
    "Schema",
    "Snapshot",
    "SnapshotRef",
    "SnapshotTable",
    "SortDirection",
    "SortField",
    "SortOrder",
    "StatisticsFile",
    "StorageError",
    "StoredFile",
    "StoredRows",
    "StringType",
    "StructType",
    "Table",
    "TableHealth",
    "TableScan",
    "TableVerification",
    "TimeType",
    "TimestampNanoType",
    "TimestampType",
    "TimestamptzNanoType",
    "TimestamptzType",
    "Transaction",
    "TruncateTransform",
    "UUIDType",
    "UnknownType",
    "UnsupportedFeatureError",
    "UpdateSchema",
    "UpdateSortOrder",
    "UpdateSpec",
    "UpdateStatistics",
    "ValidationError",
    "VariantType",
    "View",
    "ViewHistoryEntry",
    "ViewMetadata",
    "ViewVersion",
    "VoidTransform",
    "YearTransform",
    "changes",
    "delete_reachable_files",
    "load_catalog",
    "load_table",
    "migrate",
    "progress",
    "register",
    "snapshot",
    "sql",
    "unregister",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(home), name)
    except ImportError as error:
        # Another package's requirements may have replaced PySpark by an older one.
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise ImportError(
            f"icebergds.{name} needs PySpark 4.1 or later ({error}): "
            "pip install 'pyspark[sql]>=4.1'",
            name=error.name,
            path=error.path,
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)
