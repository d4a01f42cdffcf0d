"""Projects a scan's filter to the partitions of each spec (spec: Scan Planning, note 1)."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.errors import InvalidMetadataError
from icebergds.expr.metrics import manifest_might_match
from icebergds.expr.nodes import Expr
from icebergds.expr.project import project
from icebergds.spec.manifest import ManifestFile
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema


class PartitionFilters:
    """A row filter, projected once per partition spec.

    Args:
        specs: partition specs by id.
        schema: the schema that is read.
        row_filter: bound to `schema`.
    """

    def __init__(self, specs: Mapping[int, PartitionSpec], schema: Schema, row_filter: Expr):
        self._specs = specs
        self._schema = schema
        self._filters = {
            spec_id: project(row_filter, spec, schema) for spec_id, spec in specs.items()
        }

    def of(self, manifest: ManifestFile) -> Expr:
        """The filter on the partitions of a manifest's files.

        Raises:
            InvalidMetadataError: the table does not have the manifest's spec.
        """
        return self._filters[self._spec(manifest).spec_id]

    def might_match(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may list a live file with rows that match the filter.

        Raises:
            InvalidMetadataError: the table does not have the manifest's spec.
        """
        if not has_live_files(manifest):
            return False
        types = partition_type(self._spec(manifest), self._schema)
        return manifest_might_match(self.of(manifest), types, manifest.partitions)

    def _spec(self, manifest: ManifestFile) -> PartitionSpec:
        spec = self._specs.get(manifest.partition_spec_id)
        if spec is None:
            raise InvalidMetadataError(
                f"manifest {manifest.manifest_path} was written with partition spec "
                f"{manifest.partition_spec_id}, which is not in the table's metadata"
            )
        return spec


def has_live_files(manifest: ManifestFile) -> bool:
    """Whether a manifest may list live files; the manifest list may not say."""
    return manifest.added_files_count != 0 or manifest.existing_files_count != 0
