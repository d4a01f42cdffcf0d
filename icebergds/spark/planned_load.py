"""Loads of scans that were planned before Spark was asked (`spark.scan.planned_dataframe`)."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.scan.packing import unpack_scan
from icebergds.scan.read_plan import ReadPlan

PLANNED_SCAN = "planned-scan"
"""The option that holds a whole planned scan; it has no meaning beside other options."""


def planned_load(options: Mapping[str, str]) -> tuple[ReadPlan, list[bytes]] | None:
    """The plan and the packed task groups of a load; None if it is to be planned.

    Raises:
        InvalidOptionError: the option is damaged, or of another version of this package.
    """
    text = next((v for name, v in options.items() if name.lower() == PLANNED_SCAN), None)
    if text is None:
        return None
    try:
        packed = base64.b64decode(text, validate=True)
    except ValueError:
        raise InvalidOptionError(f"option {PLANNED_SCAN!r} is not in base 64") from None
    return unpack_scan(packed)
