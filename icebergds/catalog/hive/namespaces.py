"""Converts namespaces to databases of the Hive Metastore and back, as Java Iceberg does."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.catalog.hive.entries import current_user
from icebergds.catalog.hive.messages import Database, PrincipalType
from icebergds.errors import InvalidOptionError

LOCATION = "location"
COMMENT = "comment"
OWNER = "hive.metastore.database.owner"
OWNER_TYPE = "hive.metastore.database.owner-type"


def database_of(name: str, properties: Mapping[str, str], base: Database | None = None) -> Database:
    """The database with the properties of a namespace.

    Args:
        base: the database as it is now, of which other fields are kept.

    Raises:
        InvalidOptionError: the type of the owner is unknown, or given without an owner.
    """
    base = base or Database(name=name)
    given = (LOCATION, COMMENT, OWNER, OWNER_TYPE)
    owner = properties.get(OWNER)
    return Database(
        name=base.name,
        description=properties.get(COMMENT),
        location=properties.get(LOCATION),
        parameters={key: value for key, value in properties.items() if key not in given},
        owner=owner or current_user(),
        owner_type=_owner_type(properties),
        catalog=base.catalog,
        create_time=base.create_time,
        managed_location=base.managed_location,
    )


def properties_of(database: Database) -> dict[str, str]:
    """The properties of the namespace that a database is."""
    found = dict(database.parameters or {})
    if database.location is not None:
        found[LOCATION] = database.location
    if database.description is not None:
        found[COMMENT] = database.description
    if database.owner is not None:
        found[OWNER] = database.owner
        if database.owner_type is not None:
            found[OWNER_TYPE] = PrincipalType(database.owner_type).name
    return found


def _owner_type(properties: Mapping[str, str]) -> int:
    text = properties.get(OWNER_TYPE)
    if text is None:
        return PrincipalType.USER
    if OWNER not in properties:
        raise InvalidOptionError(f"{OWNER_TYPE} is given without {OWNER}; give both or none")
    try:
        return PrincipalType[text]
    except KeyError:
        raise InvalidOptionError(
            f"{OWNER_TYPE} is {text!r}, expected one of {', '.join(PrincipalType.__members__)}"
        ) from None
