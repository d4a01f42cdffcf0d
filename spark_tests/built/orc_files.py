"""Changes ORC files to what pyarrow does not write."""

from __future__ import annotations

from pathlib import Path

from icebergds.formats.orc.protobuf import fields_of, message, numbers_of


def mark_hybrid_calendar(path: Path) -> None:
    """Marks an uncompressed file as one of the hybrid calendar, as Hive and Spark do."""
    content = path.read_bytes()
    length_of_postscript = content[-1]
    fields = content[-1 - length_of_postscript : -1]
    mark = message((11, 1))
    # The first field of a postscript is the length of the footer before it, which gets longer.
    length_of_footer = numbers_of(fields)[1] + len(mark)
    postscript = message((1, length_of_footer), *(f for f in fields_of(fields) if f[0] != 1))
    body = content[: -1 - length_of_postscript]
    path.write_bytes(body + mark + postscript + bytes([len(postscript)]))
