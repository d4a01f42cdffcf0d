"""Reads and writes the items of a catalog's DynamoDB table.

A table's item has the key (`db.t`, `db`), a namespace's item (`NAMESPACE`, `db`); the parts of a
namespace are joined by dots. Properties are attributes with the prefix `p.`. Each change sets a new
version `v` of the item. DynamoDB refuses a commit if the item no longer has the version that the
commit is based on.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from icebergds.catalog.aws.client import AwsClient, Reply
from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import Pointer, Swap, is_moved
from icebergds.errors import AlreadyExistsError, CommitConflictError, InvalidMetadataError
from icebergds.spec.values.dates import now_ms

__all__ = ["DynamoDbPointer", "Items", "namespace_key", "properties_of"]

_LOG = logging.getLogger(__name__)

Item: TypeAlias = Mapping[str, Mapping[str, Any]]
"""An item in the JSON of DynamoDB."""


@dataclass(frozen=True, slots=True)
class Items:
    """The items in a catalog's DynamoDB table, which is created if it turns out to be missing.

    Attributes:
        table: the name of the table in DynamoDB.
    """

    client: AwsClient
    table: str

    def find(self, key: Item) -> Item | None:
        reply = self._send("get_item", Key=key, ConsistentRead=True)
        reply.check()
        found: Item | None = reply.body.get("Item")
        return found

    def insert(self, key: Item, properties: Mapping[str, str]) -> Reply:
        """Adds an item if its key does not exist."""
        item = _new_item(key, properties)
        return self._send("put_item", Item=item, ConditionExpression="attribute_not_exists(v)")

    def update(
        self,
        key: Item,
        version: str | None,
        updates: Mapping[str, str],
        removals: Iterable[str] = (),
    ) -> Reply:
        """Changes the properties of an existing item, if it has the version (or any, if None)."""
        names, values = {}, {":time": _number(now_ms()), ":new": _text(str(uuid.uuid4()))}
        sets, removes = ["updated_at = :time", "v = :new"], []
        for place, (name, value) in enumerate(updates.items()):
            names[f"#s{place}"], values[f":s{place}"] = _PREFIX + name, _text(value)
            sets.append(f"#s{place} = :s{place}")
        for place, name in enumerate(removals):
            names[f"#r{place}"] = _PREFIX + name
            removes.append(f"#r{place}")
        condition = "attribute_exists(v)"
        if version is not None:
            condition, values[":old"] = "v = :old", _text(version)
        expression = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else "")
        return self._send(
            "update_item",
            Key=key,
            ConditionExpression=condition,
            UpdateExpression=expression,
            ExpressionAttributeNames=names or None,
            ExpressionAttributeValues=values,
        )

    def delete(self, key: Item, version: str | None) -> Reply:
        """Deletes an existing item, if it has the version (or any, if None)."""
        values = None if version is None else {":old": _text(version)}
        return self._send(
            "delete_item",
            Key=key,
            ConditionExpression="attribute_exists(v)" if version is None else "v = :old",
            ExpressionAttributeValues=values,
        )

    def move(self, item: Item, key: Item) -> Reply:
        """Changes the key of an item in one transaction, if its version is unchanged."""
        delete = {
            "TableName": self.table,
            "Key": {name: item[name] for name in key},
            "ConditionExpression": "v = :old",
            "ExpressionAttributeValues": {":old": item["v"]},
        }
        put = {
            "TableName": self.table,
            "Item": _new_item(key, properties_of(item)),
            "ConditionExpression": "attribute_not_exists(v)",
        }
        return self.client.send(
            "transact_write_items", TransactItems=[{"Delete": delete}, {"Put": put}]
        )

    def namespaces(self) -> list[Identifier]:
        """The namespaces that have an item."""
        return [_namespace(item) for page in self._pages(_NAMESPACES) for item in page]

    def some_namespaces(self) -> list[Identifier]:
        """Namespaces for hints: some of many, none if listing is not allowed."""
        reply = self._send("query", **_NAMESPACES)
        return [_namespace(item) for item in reply.body.get("Items", ())]

    def tables(self, namespace: Identifier) -> list[str]:
        """The names of a namespace's tables, from an index that is eventually consistent."""
        pages = self._pages(_tables_in(namespace))
        return [name for page in pages for name in _table_names(page, namespace)]

    def some_tables(self, namespace: Identifier) -> list[str]:
        """Tables of a namespace for hints: some of many, none if listing is not allowed."""
        reply = self._send("query", **_tables_in(namespace))
        return _table_names(reply.body.get("Items", ()), namespace)

    def _pages(self, query: Mapping[str, Any]) -> Iterator[Sequence[Item]]:
        start: Mapping[str, Any] | None = None
        while True:
            reply = self._send("query", ExclusiveStartKey=start, **query)
            yield reply.require("Items")
            start = reply.body.get("LastEvaluatedKey")
            if not start:
                return

    def _send(self, operation: str, **parameters: Any) -> Reply:
        given = {"TableName": self.table, **parameters}
        reply = self.client.send(operation, **given)
        if reply.code != "ResourceNotFoundException":
            return reply
        _create_table(self.client, self.table)
        return self.client.send(operation, **given)


def _table_key(identifier: Identifier) -> Item:
    namespace = _joined(identifier[:-1])
    return {"identifier": _text(f"{namespace}.{identifier[-1]}"), "namespace": _text(namespace)}


def namespace_key(namespace: Identifier) -> Item:
    return {"identifier": _text(_NAMESPACE), "namespace": _text(_joined(namespace))}


def properties_of(item: Item) -> dict[str, str]:
    """The properties in an item."""
    return {
        name.removeprefix(_PREFIX): value["S"]
        for name, value in item.items()
        if name.startswith(_PREFIX) and "S" in value
    }


def _joined(namespace: Sequence[str]) -> str:
    """A namespace as stored."""
    return ".".join(namespace)


_NAMESPACE = "NAMESPACE"
# The index by namespace, read with eventual consistency.
_INDEX = "namespace-identifier"
_PREFIX = "p."
_NAMESPACES: Mapping[str, Any] = {
    "ConsistentRead": True,
    "KeyConditionExpression": "identifier = :identifier",
    "ExpressionAttributeValues": {":identifier": {"S": _NAMESPACE}},
}


def _tables_in(namespace: Identifier) -> dict[str, Any]:
    """The query for a namespace's items."""
    return {
        "IndexName": _INDEX,
        "KeyConditionExpression": "#n = :namespace",
        "ExpressionAttributeNames": {"#n": "namespace"},
        "ExpressionAttributeValues": {":namespace": _text(_joined(namespace))},
    }


def _table_names(items: Iterable[Item], namespace: Identifier) -> list[str]:
    names = (str(item["identifier"]["S"]) for item in items)
    prefix = f"{_joined(namespace)}."
    return [name.removeprefix(prefix) for name in names if name != _NAMESPACE]


def _namespace(item: Item) -> Identifier:
    return tuple(item["namespace"]["S"].split("."))


def _new_item(key: Item, properties: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    now = _number(now_ms())
    given = {_PREFIX + name: _text(value) for name, value in properties.items()}
    version = _text(str(uuid.uuid4()))
    return {**key, **given, "v": version, "created_at": now, "updated_at": now}


def _text(value: str) -> dict[str, str]:
    return {"S": value}


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _create_table(client: AwsClient, table: str) -> None:
    """Creates the table if it does not exist, and waits until it can be used.

    Raises:
        StorageError: it cannot be created.
    """
    reply = client.send(
        "create_table",
        TableName=table,
        KeySchema=_schema_of_keys("identifier", "namespace"),
        AttributeDefinitions=[
            {"AttributeName": "identifier", "AttributeType": "S"},
            {"AttributeName": "namespace", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": _INDEX,
                "KeySchema": _schema_of_keys("namespace", "identifier"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    # Another process may be creating it.
    if reply.code != "ResourceInUseException" and not reply.uncertain:
        reply.check()
        _LOG.info("catalog %s: created the table %s in DynamoDB", client.settings.catalog, table)
    client.wait("table_exists", "describe_table", seconds=300, TableName=table).check()


def _schema_of_keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


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
        item = self.items.find(_table_key(self.identifier))
        if item is None:
            return None
        properties = properties_of(item)
        # PyIceberg writes an empty string if there is no earlier file.
        return Pointer(properties.get(_LOCATION) or None, properties.get(_PREVIOUS) or None, item)

    def insert(self, location: str, metadata: object) -> Swap:
        properties = {_TYPE: "ICEBERG", _LOCATION: location}
        reply = self.items.insert(_table_key(self.identifier), properties)
        if reply.code == "ConditionalCheckFailedException":
            return reply.swap(AlreadyExistsError(f"table {self.name} already exists"))
        return reply.swap()

    def swap(self, base: Pointer, location: str, metadata: object) -> Swap:
        updates = {_TYPE: "ICEBERG", _LOCATION: location}
        if base.metadata_location is not None:
            updates[_PREVIOUS] = base.metadata_location
        reply = self.items.update(_table_key(self.identifier), _version(base), updates)
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
        reply = self.items.delete(_table_key(self.identifier), version)
        if reply.confirmed(f"drop table {self.name}", lambda: self.find() is None):
            return True
        if reply.code != "ConditionalCheckFailedException":
            reply.check()
        return False

    def move(self, target: DynamoDbPointer, found: Pointer) -> bool:
        reply = self.items.move(_item(found), _table_key(target.identifier))
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
