"""Builds the paths of the REST catalog's resources (REST catalog specification: paths)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from icebergds.catalog.base import Identifier
from icebergds.errors import InvalidOptionError

CONFIG = "v1/config"
TOKENS = "v1/oauth/tokens"
SEPARATOR = "%1F"
"""Separator of the parts of a namespace, unless the server sets another."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The paths of one catalog on a server.

    Attributes:
        catalog: the catalog's name in messages.
        prefix: what comes between `v1/` and the resource; may be empty.
        separator: joins the parts of a namespace, percent-encoded.
        through: the views through which tables and views are loaded, outermost first.
    """

    catalog: str
    prefix: str = ""
    separator: str = SEPARATOR
    through: tuple[Identifier, ...] = ()

    def namespaces(self) -> str:
        return self._path("namespaces")

    def namespace(self, namespace: Identifier) -> str:
        return self._path("namespaces", self._joined(namespace))

    def properties(self, namespace: Identifier) -> str:
        return f"{self.namespace(namespace)}/properties"

    def tables(self, namespace: Identifier) -> str:
        return f"{self.namespace(namespace)}/tables"

    def unregister(self, identifier: Identifier) -> str:
        return f"{self.table(identifier)}/unregister"

    def register(self, namespace: Identifier) -> str:
        return f"{self.namespace(namespace)}/register"

    def table(self, identifier: Identifier) -> str:
        return f"{self.tables(identifier[:-1])}/{self._segment(identifier[-1])}"

    def loaded_table(self, identifier: Identifier) -> str:
        """The path of a table that is loaded, with the views through which it is."""
        return self.with_views(self.table(identifier))

    def credentials(self, identifier: Identifier) -> str:
        return self.with_views(f"{self.table(identifier)}/credentials")

    def sign(self, identifier: Identifier) -> str:
        return f"{self.table(identifier)}/sign"

    def metrics(self, identifier: Identifier) -> str:
        return f"{self.table(identifier)}/metrics"

    def plans(self, identifier: Identifier) -> str:
        return f"{self.table(identifier)}/plan"

    def plan(self, identifier: Identifier, plan_id: str) -> str:
        return f"{self.plans(identifier)}/{self._segment(plan_id)}"

    def tasks(self, identifier: Identifier) -> str:
        return f"{self.table(identifier)}/tasks"

    def rename_table(self) -> str:
        return self._path("tables", "rename")

    def transaction(self) -> str:
        return self._path("transactions", "commit")

    def views(self, namespace: Identifier) -> str:
        return f"{self.namespace(namespace)}/views"

    def view(self, identifier: Identifier) -> str:
        return f"{self.views(identifier[:-1])}/{self._segment(identifier[-1])}"

    def loaded_view(self, identifier: Identifier) -> str:
        """The path of a view that is loaded, with the views through which it is."""
        return self.with_views(self.view(identifier))

    def register_view(self, namespace: Identifier) -> str:
        return f"{self.namespace(namespace)}/register-view"

    def functions(self, namespace: Identifier) -> str:
        return f"{self.namespace(namespace)}/functions"

    def function(self, identifier: Identifier) -> str:
        return f"{self.functions(identifier[:-1])}/{self._segment(identifier[-1])}"

    def rename_view(self) -> str:
        return self._path("views", "rename")

    def with_views(self, address: str) -> str:
        """An address that loads something, with the query parameter `referenced-by`.

        Commas between the views are written as they are, and those in names encoded, as in Java:
        a decoded value would not tell one from the other.
        """
        separator = unquote(self.separator)
        # A server takes what is behind the last separator for the name of the view.
        if not self.through or any(separator in view[-1] for view in self.through):
            return address
        chain = ",".join(map(self._joined_view, self.through))
        return f"{address}{'&' if '?' in address else '?'}referenced-by={chain}"

    def parent(self, namespace: Identifier) -> str:
        """A namespace as the value of a query parameter, not yet encoded."""
        self._check(namespace)
        return unquote(self.separator).join(namespace)

    def check(self, identifier: Identifier) -> None:
        """Checks that the name of a table, view or namespace can be part of a path.

        Raises:
            InvalidOptionError: a part of it cannot.
        """
        self._check(identifier[:-1])
        for part in identifier:
            self._segment(part)

    def _path(self, *segments: str) -> str:
        # A prefix may have several segments, such as catalogs/lake.
        prefix = quote(self.prefix.strip("/"), safe="/%")
        return "/".join(filter(None, ("v1", prefix, *segments)))

    def _joined(self, namespace: Identifier) -> str:
        self._check(namespace)
        return self.separator.join(map(self._segment, namespace))

    def _joined_view(self, view: Identifier) -> str:
        return f"{self._joined(view[:-1])}{self.separator}{self._segment(view[-1])}"

    def _check(self, namespace: Identifier) -> None:
        separator = unquote(self.separator)
        for part in namespace:
            if separator in part:
                raise InvalidOptionError(
                    f"catalog {self.catalog}: the part {part!r} of a namespace contains "
                    f"{separator!r}, which joins the parts of namespaces on this server; choose "
                    "another name"
                )

    def _segment(self, name: str) -> str:
        # Clients and proxies remove such segments, which would change the path.
        if name in (".", "..", ""):
            raise InvalidOptionError(
                f"catalog {self.catalog}: {name!r} cannot be the name of a table or a part of a "
                "namespace in a REST catalog"
            )
        try:
            return quote(name, safe="")
        except UnicodeEncodeError:
            raise InvalidOptionError(
                f"catalog {self.catalog}: the name {name!r} is not valid Unicode"
            ) from None
