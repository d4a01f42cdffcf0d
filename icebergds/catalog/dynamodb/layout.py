"""Creates a catalog's table in DynamoDB."""

from __future__ import annotations

import logging

from icebergds.catalog.aws.client import AwsClient

__all__ = ["INDEX", "create_catalog_table"]

_LOG = logging.getLogger(__name__)

INDEX = "namespace-identifier"
"""The index by namespace; it is read without consistency."""


def create_catalog_table(client: AwsClient, table: str) -> None:
    """Creates the table if it does not exist, and waits until it can be used.

    Raises:
        StorageError: it cannot be created.
    """
    reply = client.send(
        "create_table",
        TableName=table,
        KeySchema=_key("identifier", "namespace"),
        AttributeDefinitions=[
            {"AttributeName": "identifier", "AttributeType": "S"},
            {"AttributeName": "namespace", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": _key("namespace", "identifier"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    # Another process may be creating it.
    if reply.code != "ResourceInUseException" and not reply.uncertain:
        reply.check()
        _LOG.info("catalog %s: created the table %s in DynamoDB", client.settings.catalog, table)
    client.wait("table_exists", "describe_table", seconds=_PATIENCE, TableName=table).check()


_PATIENCE = 300


def _key(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]
