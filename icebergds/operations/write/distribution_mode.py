"""How a table wants rows to be shuffled before they are written."""

from __future__ import annotations

from icebergds.errors import InvalidOptionError
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.metadata import TableMetadata

DISTRIBUTION_MODE = "write.distribution-mode"
_MODES = ("none", "hash", "range")


def distribution_mode(options: WriteOptions, metadata: TableMetadata) -> str:
    """`none`, `hash` or `range`: as the write says, else the table, else as Java Iceberg does.

    Raises:
        InvalidOptionError: the table's property is none of these.
    """
    if not options.use_table_distribution:
        return "none"
    if options.distribution_mode is not None:
        return options.distribution_mode
    text = metadata.properties.get(DISTRIBUTION_MODE)
    if text is None:
        return _default(metadata)
    if text.lower() not in _MODES:
        raise InvalidOptionError(
            f"table property {DISTRIBUTION_MODE} = {text!r}: expected one of {', '.join(_MODES)}"
        )
    return text.lower()


def _default(metadata: TableMetadata) -> str:
    if metadata.sort_order().is_sorted:
        return "range"
    return "none" if metadata.spec().is_unpartitioned else "hash"
