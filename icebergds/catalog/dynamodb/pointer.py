"""Points to the metadata file of a table by its item in DynamoDB (`DynamoDbPointer`).

DynamoDB refuses a commit if the item has a newer version than that it is based on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.dynamodb.items import Item, Items, properties_of, table_key
from icebergds.catalog.pointer.pointer import Pointer, Swap, is_moved
from icebergds.errors import AlreadyExistsError, CommitConflictError, InvalidMetadataError

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
        return Pointer(properties.get(_LOCATION) or None, properties.get(_PREVIOUS) or None, item)

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
        reply = self.items.update(table_key(self.identifier), _version(base), updates)
        if reply.code == "ConditionalCheckFailedException":
            return reply.swap(
                CommitConflictError(f"table {self.name} was changed by another commit")
            )
        return reply.swap()

    def delete(self, found: Pointer) -> bool:
        if not (version := _version(found)):
            raise InvalidMetadataError(
                f"table {self.name} was not dropped: its item in DynamoDB has no attribute v, the "
                "version; delete the item, or give it a text as v"
            )
        reply = self.items.delete(table_key(self.identifier), version)
        if reply.confirmed(f"drop table {self.name}", lambda: self.find() is None):
            return True
        if reply.code != "ConditionalCheckFailedException":
            reply.check()
        return False

    def move(self, target: DynamoDbPointer, found: Pointer) -> bool:
        reply = self.items.move(_item(found), table_key(target.identifier))
        what = f"rename table {self.name} to {target.name}"
        if reply.confirmed(what, lambda: is_moved(self, target)):
            return True
        if reply.code != "TransactionCanceledException":
            reply.check()
        return False


_TYPE = "table_type"
_LOCATION = "metadata_location"
_PREVIOUS = "previous_metadata_location"


def _item(found: Pointer) -> Item:
    item = found.token
    assert isinstance(item, Mapping), "the pointer is one that was found"
    return item


def _version(found: Pointer) -> str:
    return str(_item(found).get("v", {}).get("S", ""))
