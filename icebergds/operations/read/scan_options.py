"""Converts a scan's arguments to load options, which another process can read."""

from __future__ import annotations

import json
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.io.storage_options import storage_properties_of
from icebergds.operations.options.values import is_of_address


def scan_options(
    io: FileIO, arguments: Mapping[str, str | None], options: Mapping[str, str]
) -> dict[str, str]:
    """The options of a load that is equivalent to a scan, including those of the table's storage.

    Args:
        io: the table's storage.
        arguments: of the scan, by option name; None if not given.
        options: further options by name in any case, already checked.
    """
    named = {name: value for name, value in arguments.items() if value is not None}
    further = {name.lower(): value for name, value in options.items()}
    # Relative paths are relative to this process, but the data source runs in another one.
    location_map = {"": io.working_directory, **io.location_map}
    return {
        **storage_properties_of(io.all_properties),
        "location-map": json.dumps(location_map),
        **named,
        **further,
    }


def refuse_address_options(options: Mapping[str, str]) -> None:
    """Refuses options that name a table or its storage, which a scan of a loaded table has.

    Raises:
        InvalidOptionError: an option names a table or its storage.
    """
    names = (name.lower() for name in options)
    if of_load := sorted(name for name in names if is_of_address(name)):
        raise InvalidOptionError(
            f"{', '.join(of_load)}: options that name a table or its storage cannot be set for a "
            "scan of a loaded table; set them in load_table"
        )
