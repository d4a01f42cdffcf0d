"""Unpacks scans that were planned before the load (`spark.scan.planned_dataframe`)."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.scan.packing import unpack_scan
from icebergds.scan.read_plan import ReadPlan

PLANNED_SCAN = "planned-scan-secret"
"""The option that holds a whole planned scan; if it is set, other options are ignored.

Spark shows options in plans, also in its event log. The scan has the credentials of its storage,
so the name is one of those whose values Spark leaves out there (`spark.redaction.regex`).
"""


def planned_load(
    options: Mapping[str, str], key: bytes | None = None
) -> tuple[ReadPlan, list[bytes]] | None:
    """The plan and packed task groups of a load; None if the load is not planned yet.

    Args:
        key: that the scan was packed with; None if it was packed without.

    Raises:
        InvalidOptionError: the option is damaged, or from another version of this package.
    """
    text = next((v for name, v in options.items() if name.lower() == PLANNED_SCAN), None)
    if text is None:
        return None
    try:
        packed = base64.b64decode(text, validate=True)
    except ValueError:
        raise InvalidOptionError(f"option {PLANNED_SCAN!r} is not valid base 64") from None
    return unpack_scan(packed, key)
