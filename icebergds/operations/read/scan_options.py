"""Writes a scan's arguments as the options of a load, which another process can read."""

from __future__ import annotations

import json
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.operations.options.values import is_of_address, storage_properties_of


def scan_options(
    io: FileIO, arguments: Mapping[str, str | None], options: Mapping[str, str]
) -> dict[str, str]:
    """The options of a load that reads as a scan does, with those of the table's storage.

    Args:
        io: the table's storage.
        arguments: of the scan, by the names of their options; None if not given.
        options: further ones, by name in any case.

    Raises:
        InvalidOptionError: an option names a table or a storage, or is an argument as well.
    """
    named = {name: value for name, value in arguments.items() if value is not None}
    further = {name.lower(): value for name, value in options.items()}
    if of_load := sorted(name for name in further if is_of_address(name)):
        raise InvalidOptionError(
            f"{', '.join(of_load)}: options that name a table or its storage are those of "
            "load_table, not of a scan"
        )
    if both := sorted(named.keys() & further.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given as an argument of the scan and as an option; give one"
        )
    # Relative paths are relative to this process: the data source runs elsewhere.
    location_map = {"": io.working_directory, **io.location_map}
    return {
        **storage_properties_of(io.properties),
        "location-map": json.dumps(location_map),
        **named,
        **further,
    }
