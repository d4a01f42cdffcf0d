"""Points to the metadata file of a table by its item in DynamoDB (`DynamoDbPointer`).

DynamoDB refuses a commit if the item has a newer version than that it is based on.
"""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.dynamodb.items import Items, properties_of, table_key, version_of
from icebergds.catalog.pointer.pointer import Pointer, Swap
from icebergds.errors import AlreadyExistsError, CommitConflictError

__all__ = ["DynamoDbPointer"]


@dataclass(frozen=True, slots=True)
class DynamoDbPointer:
    """The item of a table; implements `MetadataPointer`.

    Attributes:
        name: the table's name in messages.
    """

    items: Items
    identifier: Identifier
    name: str

    def find(self) -> Pointer | None:
        item = self.items.find(table_key(self.identifier))
        if item is None:
            return None
        properties = properties_of(item)
        # PyIceberg writes an empty text if there is no earlier file.
        return Pointer(
            properties.get(_LOCATION) or None, properties.get(_PREVIOUS) or None, version_of(item)
        )

    def insert(self, location: str, metadata: object) -> Swap:
        properties = {_TYPE: "ICEBERG", _LOCATION: location}
        reply = self.items.insert(table_key(self.identifier), properties)
        if reply.code == "ConditionalCheckFailedException":
            return reply.swap(AlreadyExistsError(f"table {self.name} already exists"))
        return reply.swap()

    def swap(self, base: Pointer, location: str, metadata: object) -> Swap:
        updates = {_TYPE: "ICEBERG", _LOCATION: location}
        if base.metadata_location is not None:
            updates[_PREVIOUS] = base.metadata_location
        reply = self.items.update(table_key(self.identifier), str(base.token), updates)
        if reply.code == "ConditionalCheckFailedException":
            return reply.swap(
                CommitConflictError(f"table {self.name} was changed by another commit")
            )
        return reply.swap()


_TYPE = "table_type"
_LOCATION = "metadata_location"
_PREVIOUS = "previous_metadata_location"
