"""Models the statistics files of table metadata (spec: Table Statistics, Partition Statistics).

Readers may ignore all of them. `unknown` keeps JSON members that the spec does not define.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icebergds.display import html_result
from icebergds.spec.read_only import ReadOnlyDict, set_read_only


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """A blob of statistics inside a Puffin file; `blob_type` may be unknown.

    `fields` are the ids of the columns that it was computed on, in order.
    """

    blob_type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_read_only(self, "properties")


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A Puffin file with statistics of one snapshot; sizes are in bytes.

    `key_metadata` is base64 text whose meaning depends on the encryption in use.
    """

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = None
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def _repr_html_(self) -> str:
        return html_result("Statistics file", self)


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """A file with one row of statistics per partition, for one snapshot; the size is in bytes."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def _repr_html_(self) -> str:
        return html_result("Partition statistics file", self)
