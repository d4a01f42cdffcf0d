"""Adds existing data files, which belong to no table yet, to a table."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from icebergds.commit.base import CommitBase
from icebergds.commit.data_files import Append
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.workspace import Workspace
from icebergds.errors import AlreadyExistsError, ValidationError
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.reporting import advance, stage
from icebergds.spec.json.name_mapping import NAME_MAPPING_PROPERTY
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestFile
from icebergds.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class AddFiles:
    """Adds data files that were found to fit the table.

    Attributes:
        schema: the table's schema, which they fit.
        name_mapping: the table's property `schema.name-mapping.default` that they were read with;
            None if they have field ids of their own.
        refuses_duplicates: whether it is an error if the branch has one of them.
    """

    files: tuple[DataFile, ...]
    schema: Schema
    name_mapping: str | None
    refuses_duplicates: bool
    depends_on_rows: ClassVar[bool] = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Validates that the files still fit the table, and appends them.

        Raises:
            ValidationError: another commit changed the schema or the name mapping.
            AlreadyExistsError: the branch has one of the files.
        """
        mapping = base.metadata.properties.get(NAME_MAPPING_PROPERTY)
        if base.metadata.schema() != self.schema or self.name_mapping not in (None, mapping):
            raise ValidationError(
                f"table {base.name}: another commit changed the table's columns or its name "
                "mapping while the files to add were read; nothing was committed. Add them again"
            )
        if self.refuses_duplicates:
            self._refuse_duplicates(work, base)
        # Files that are there already are not encrypted for it.
        return Append(self.files, may_be_plain=True).produce(work, base)

    def _refuse_duplicates(self, work: Workspace, base: CommitBase) -> None:
        added = {base.io.locate(file.file_path) for file in self.files}

        there: list[str] = []
        manifests = base.manifests_of(ManifestContent.DATA)
        with stage("read manifests", len(manifests)):
            for manifest in manifests:
                key = "listed", manifest.manifest_path
                there += work.once(key, partial(_listed, base, manifest, added))
                advance()
        if there:
            raise AlreadyExistsError(
                f"table {base.name}: branch {base.branch!r} has {len(there)} of the files to add "
                f"already, such as {min(there)}; nothing was committed. Leave them out, or give "
                "check_duplicate_files=False to have their rows twice"
            )


def _listed(base: CommitBase, manifest: ManifestFile, locations: AbstractSet[str]) -> list[str]:
    """The paths in a manifest that point to any of the locations."""
    columns = read_manifest_columns(
        base.io,
        manifest,
        base.metadata.specs_by_id,
        base.metadata.schema(),
        history=base.metadata.schema_history,
        stats_ids=frozenset(),
    )
    paths: list[str] = columns.file_path.to_pylist()
    return [path for path in paths if base.io.locate(path) in locations]
