"""Creates, lists, changes and drops the namespaces of a DynamoDB catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.dynamodb.items import Items, joined, namespace_key, properties_of
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)
from icebergds.suggestions import did_you_mean

__all__ = ["Namespaces"]


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of a catalog, which are items of their own."""

    items: Items
    catalog: str

    def below(self, parent: Identifier) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        depth = len(parent) + 1
        known = self.items.namespaces()
        found = {n[:depth] for n in known if len(n) >= depth and n[: depth - 1] == parent}
        if parent and not found and parent not in known:
            raise self._missing(parent)
        return sorted(found)

    def properties(self, namespace: Identifier) -> dict[str, str]:
        """Those of a namespace, none of one that only has others in it.

        Raises NoSuchNamespaceError.
        """
        found = self._find(namespace)
        if found is None:
            self.below(namespace)
            return {}
        return found

    def require(self, namespace: Identifier) -> dict[str, str]:
        """The properties of a namespace that can have tables. Raises NoSuchNamespaceError."""
        found = self._find(namespace)
        if found is None:
            raise self._missing(namespace)
        return found

    def create(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Raises AlreadyExistsError."""
        self._check(namespace)
        reply = self.items.insert(namespace_key(namespace), properties)
        what = f"create namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._find(namespace) == properties):
            if reply.code == "ConditionalCheckFailedException":
                raise AlreadyExistsError(f"namespace {self._named(namespace)} already exists")
            reply.check()

    def update(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Raises NoSuchNamespaceError."""
        self._check(namespace)
        if both := set(removals) & updates.keys():
            raise InvalidOptionError(
                f"namespace {self._named(namespace)}: {', '.join(sorted(both))} cannot be both "
                "removed and set"
            )

        def is_changed() -> bool:
            found = self.properties(namespace)
            return updates.items() <= found.items() and found.keys().isdisjoint(removals)

        reply = self.items.update(namespace_key(namespace), None, updates, set(removals))
        if not reply.confirmed(f"change namespace {self._named(namespace)}", is_changed):
            if reply.code == "ConditionalCheckFailedException":
                raise self._missing(namespace)
            reply.check()

    def drop(self, namespace: Identifier) -> None:
        """Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        self.properties(namespace)
        inside = (*self.below(namespace), *((*namespace, t) for t in self.items.tables(namespace)))
        if inside:
            raise NamespaceNotEmptyError(
                f"namespace {self._named(namespace)} is not empty: it contains "
                f"{'.'.join(inside[0])}"
            )
        reply = self.items.delete(namespace_key(namespace), None)
        what = f"drop namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._find(namespace) is None):
            if reply.code == "ConditionalCheckFailedException":
                raise self._missing(namespace)
            reply.check()

    def _find(self, namespace: Identifier) -> dict[str, str] | None:
        """The properties of a namespace; None if it does not exist."""
        self._check(namespace)
        item = self.items.find(namespace_key(namespace))
        return None if item is None else properties_of(item)

    def _missing(self, namespace: Identifier) -> NoSuchNamespaceError:
        text = joined(namespace)
        near = did_you_mean(text, map(joined, self.items.some_namespaces()))
        hint = near or f"create it with create_namespace({text!r}) or CREATE NAMESPACE"
        return NoSuchNamespaceError(f"catalog {self.catalog} has no namespace {text}; {hint}")

    def _check(self, namespace: Identifier) -> None:
        # The parts are stored joined by dots, so a dot in a part would be ambiguous.
        if not namespace or any(not part or "." in part for part in namespace):
            raise InvalidOptionError(
                f"catalog {self.catalog}: {namespace!r} is not a namespace in DynamoDB: expected "
                "names without dots, such as ('db', 'raw')"
            )

    def _named(self, namespace: Identifier) -> str:
        return joined((self.catalog, *namespace))
