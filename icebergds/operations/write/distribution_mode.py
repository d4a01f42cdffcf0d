"""Chooses how rows are shuffled before they are written (`write.distribution-mode`)."""

from __future__ import annotations

from icebergds.errors import InvalidOptionError
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.metadata import TableMetadata

DISTRIBUTION_MODE = "write.distribution-mode"
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
