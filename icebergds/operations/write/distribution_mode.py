"""Chooses how rows are shuffled before they are written (`write.distribution-mode`)."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.operations.write.options import WriteOptions
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import DISTRIBUTION_MODE, choice_property

_MODES = ("none", "hash", "range")


def distribution_mode(options: WriteOptions, metadata: TableMetadata) -> str:
    """`none`, `hash` or `range`: the write option, else the table property, else Java's default.

    Raises:
        InvalidOptionError: the table property is not one of these.
    """
    if not options.use_table_distribution:
        return "none"
    if options.distribution_mode is not None:
        return options.distribution_mode
    return distribution_property(metadata.properties) or _default(metadata)


def distribution_property(properties: Mapping[str, str]) -> str | None:
    """The table property `write.distribution-mode`; None if it is not set.

    Raises:
        InvalidOptionError: it is not `none`, `hash` or `range`.
    """
    if DISTRIBUTION_MODE not in properties:
        return None
    return choice_property(properties, DISTRIBUTION_MODE, "", _MODES)


def _default(metadata: TableMetadata) -> str:
    if metadata.sort_order().is_sorted:
        return "range"
    return "none" if metadata.spec().is_unpartitioned else "hash"
