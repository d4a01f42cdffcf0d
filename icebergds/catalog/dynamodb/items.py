"""Reads and writes the items of a catalog's table in DynamoDB.

The item of a table of the catalog has the key (`db.t`, `db`), that of a namespace (`NAMESPACE`,
`db`); the parts of a namespace are joined by dots. Properties are attributes with the prefix `p.`.
Each change gives an item a new version `v`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from icebergds.catalog.aws.client import AwsClient, Reply
from icebergds.catalog.base import Identifier
from icebergds.spec.values.dates import now_ms

__all__ = ["Item", "Items", "joined", "namespace_key", "properties_of", "table_key"]

_LOG = logging.getLogger(__name__)

Item: TypeAlias = Mapping[str, Mapping[str, Any]]
"""An item in the JSON of DynamoDB."""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a catalog's table, which is created when it is found to be missing.

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
        """Adds an item if there is none with its key."""
        item = _new_item(key, properties)
        return self._send("put_item", Item=item, ConditionExpression="attribute_not_exists(v)")

    def update(
        self,
        key: Item,
        version: str | None,
        updates: Mapping[str, str],
        removals: Iterable[str] = (),
    ) -> Reply:
        """Changes the properties of an item that exists, and has the version if one is given."""
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
        """Deletes an item that exists, and has the version if one is given."""
        values = None if version is None else {":old": _text(version)}
        return self._send(
            "delete_item",
            Key=key,
            ConditionExpression="attribute_exists(v)" if version is None else "v = :old",
            ExpressionAttributeValues=values,
        )

    def move(self, item: Item, key: Item) -> Reply:
        """Gives an item another key, in one transaction, if its version is still the same."""
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
        """Namespaces, for hints: not all of many, none if they may not be listed."""
        reply = self._send("query", **_NAMESPACES)
        return [_namespace(item) for item in reply.body.get("Items", ())]

    def tables(self, namespace: Identifier) -> list[str]:
        """The names of a namespace's tables, by an index that lags behind a little."""
        pages = self._pages(_tables_in(namespace))
        return [name for page in pages for name in _table_names(page, namespace)]

    def some_tables(self, namespace: Identifier) -> list[str]:
        """Tables of a namespace, for hints: not all of many, none if they may not be listed."""
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


def table_key(identifier: Identifier) -> Item:
    namespace = joined(identifier[:-1])
    return {"identifier": _text(f"{namespace}.{identifier[-1]}"), "namespace": _text(namespace)}


def namespace_key(namespace: Identifier) -> Item:
    return {"identifier": _text(_NAMESPACE), "namespace": _text(joined(namespace))}


def properties_of(item: Item) -> dict[str, str]:
    """The properties in an item."""
    return {
        name.removeprefix(_PREFIX): value["S"]
        for name, value in item.items()
        if name.startswith(_PREFIX) and "S" in value
    }


def joined(namespace: Sequence[str]) -> str:
    """A namespace as it is stored."""
    return ".".join(namespace)


_NAMESPACE = "NAMESPACE"
# By namespace; it is read without consistency.
_INDEX = "namespace-identifier"
_PREFIX = "p."
_NAMESPACES: Mapping[str, Any] = {
    "ConsistentRead": True,
    "KeyConditionExpression": "identifier = :identifier",
    "ExpressionAttributeValues": {":identifier": {"S": _NAMESPACE}},
}


def _tables_in(namespace: Identifier) -> dict[str, Any]:
    """The query of a namespace's items."""
    return {
        "IndexName": _INDEX,
        "KeyConditionExpression": "#n = :namespace",
        "ExpressionAttributeNames": {"#n": "namespace"},
        "ExpressionAttributeValues": {":namespace": _text(joined(namespace))},
    }


def _table_names(items: Iterable[Item], namespace: Identifier) -> list[str]:
    names = (str(item["identifier"]["S"]) for item in items)
    prefix = f"{joined(namespace)}."
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
