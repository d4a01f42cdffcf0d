"""Creates, lists and drops the namespaces of a table bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.catalog.aws.client import AwsClient
from icebergds.errors import (
    AlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    UnsupportedFeatureError,
)
from icebergds.suggestions import did_you_mean

__all__ = ["Namespaces"]


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of a table bucket by their names; they have no properties."""

    client: AwsClient
    catalog: str

    def names(self) -> list[str]:
        pages = self.client.pages("list_namespaces")
        return [found["namespace"][0] for page in pages for found in page.require("namespaces")]

    def tables(self, name: str) -> list[str]:
        """The names of a namespace's tables. Raises NoSuchNamespaceError."""
        self.require(name)
        pages = self.client.pages("list_tables", namespace=name)
        return [table["name"] for page in pages for table in page.require("tables")]

    def some_tables(self, name: str) -> list[str]:
        """Tables of a namespace, for hints: not all of many, none if they may not be listed.

        Raises NoSuchNamespaceError.
        """
        reply = self.client.send("list_tables", namespace=name)
        if reply.code == "NotFoundException":
            raise self._missing(name)
        return [table["name"] for table in reply.body.get("tables", ())]

    def require(self, name: str) -> None:
        """Raises NoSuchNamespaceError if there is no such namespace."""
        if not self._exists(name):
            raise self._missing(name)

    def create(self, name: str, properties: Mapping[str, str]) -> None:
        """Raises AlreadyExistsError."""
        self.refuse_properties(properties)
        reply = self.client.send("create_namespace", namespace=[name])
        what = f"create namespace {self.catalog}.{name}"
        if not reply.confirmed(what, lambda: self._exists(name)):
            if reply.code == "ConflictException":
                raise AlreadyExistsError(f"namespace {self.catalog}.{name} already exists")
            reply.check()

    def drop(self, name: str) -> None:
        """Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        if tables := self.tables(name):
            raise NamespaceNotEmptyError(
                f"namespace {self.catalog}.{name} is not empty: it contains the table {tables[0]}"
            )
        reply = self.client.send("delete_namespace", namespace=name)
        what = f"drop namespace {self.catalog}.{name}"
        if not reply.confirmed(what, lambda: not self._exists(name)):
            if reply.code == "ConflictException":
                raise NamespaceNotEmptyError(f"namespace {self.catalog}.{name} is not empty")
            if reply.code == "NotFoundException":
                raise self._missing(name)
            reply.check()

    def refuse_properties(self, names: Mapping[str, str]) -> None:
        """Raises UnsupportedFeatureError if there are any."""
        if names:
            raise UnsupportedFeatureError(
                f"catalog {self.catalog}: namespaces of S3 Tables have no properties, such as "
                f"{', '.join(sorted(names))}"
            )

    def _exists(self, name: str) -> bool:
        reply = self.client.send("get_namespace", namespace=name)
        if reply.code == "NotFoundException":
            return False
        reply.check()
        return True

    def _missing(self, name: str) -> NoSuchNamespaceError:
        # Hints do not need all of many, and must not fail.
        some = self.client.send("list_namespaces").body.get("namespaces", ())
        near = did_you_mean(name, (found["namespace"][0] for found in some))
        hint = near or f"create it with create_namespace({name!r}) or CREATE NAMESPACE"
        return NoSuchNamespaceError(f"catalog {self.catalog} has no namespace {name}; {hint}")
