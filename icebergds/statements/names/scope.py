"""Finds the catalog that a name in a statement belongs to (`NameScope`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds.api.catalog import Catalog, load_catalog
from icebergds.api.table import Table
from icebergds.catalog.config import catalogs_of_active_session, configured_catalogs
from icebergds.catalog.naming import how_to_configure
from icebergds.errors import InvalidOptionError, InvalidStatementError
from icebergds.expr.names import quote_name
from icebergds.spark.patches import own
from icebergds.spark.registered import session_of
from icebergds.spark.registration import read_catalogs_again
from icebergds.spark.session import acting_in, session_setting
from icebergds.spec.functions import FunctionMetadata
from icebergds.spec.table_properties import WAP_ENABLED
from icebergds.suggestions import did_you_mean

# Qualifiers of Spark's own tables and views.
_OF_SPARK = frozenset({"spark_catalog", "global_temp", "session", "system"})


@dataclass(frozen=True, slots=True)
class CatalogName:
    """A name in one of our catalogs: of a table, a view or a namespace.

    Attributes:
        parts: without the catalog's name.
    """

    catalog: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return quote_name((self.catalog, *self.parts))


@dataclass(frozen=True)
class NameScope:
    """Resolves the names of one statement; loads each catalog once.

    Attributes:
        views: the views whose queries contain the names, outermost first; the session's temporary
            views are not visible there.
        functions: the catalogs' functions by name, as far as the statement names them; None for
            names that are not of functions.
    """

    spark: SparkSession
    views: tuple[CatalogName, ...] = ()
    _loaded: dict[str, Catalog] = field(default_factory=dict, repr=False)
    functions: dict[CatalogName, FunctionMetadata | None] = field(default_factory=dict, repr=False)

    @cached_property
    def current(self) -> CurrentNamespace:
        return current_namespace(self.spark)

    def within(self, view: CatalogName, current: CurrentNamespace) -> NameScope:
        """The scope for names in the query of a view.

        Args:
            current: where the view looks for names without a catalog.
        """
        scope = NameScope(self.spark, (*self.views, view), self._loaded, self.functions)
        scope.__dict__["current"] = current
        return scope

    def at(self, current: CurrentNamespace) -> NameScope:
        """The scope for names in the query of a temporary view.

        Args:
            current: where the view looks for names without a catalog.
        """
        scope = NameScope(self.spark, (), self._loaded, self.functions)
        scope.__dict__["current"] = current
        return scope

    def catalogs(self) -> list[str]:
        """The names of our catalogs, sorted."""
        return [name for name in sorted(self._of_session | self._configured) if self._is_free(name)]

    def is_catalog(self, name: str) -> bool:
        """Whether one of our catalogs has the name, and no catalog configured in Spark."""
        if name in self._of_session:
            return self._is_free(name)
        return name in self._configured and self._is_free(name)

    def is_of_spark(self, name: str) -> bool:
        """Whether Spark resolves the name first, to a catalog or something else."""
        return name.lower() in _OF_SPARK or not self._is_free(name)

    def table(self, parts: tuple[str, ...], *, may_be_temporary: bool = True) -> CatalogName | None:
        """Resolves the name of a table or view; None if it is Spark's own.

        Args:
            may_be_temporary: look for temporary views first.
        """
        first, *rest = parts
        if rest and first in self._of_session and self._is_free(first):
            return CatalogName(first, tuple(rest))
        # Configured outside of Spark: a name of two parts may be a table of Spark's own catalog.
        if len(rest) > 1 and first in self._configured and self._is_free(first):
            return CatalogName(first, tuple(rest))
        current = self.current
        if current.catalog is None or first.lower() in _OF_SPARK:
            return None
        if rest:
            return None if self.is_of_spark(first) else CatalogName(current.catalog, parts)
        if may_be_temporary and self.is_temporary_view(parts):
            return None
        return CatalogName(current.catalog, (*current.namespace, first))

    def namespace(self, parts: tuple[str, ...]) -> CatalogName | None:
        """Resolves the name of a namespace; None if it is Spark's own."""
        if parts and self.is_catalog(parts[0]):
            return CatalogName(parts[0], parts[1:])
        if self.current.catalog is None or (parts and self.is_of_spark(parts[0])):
            return None
        return CatalogName(self.current.catalog, parts or self.current.namespace)

    def is_temporary_view(self, parts: tuple[str, ...]) -> bool:
        """Whether a name stands for a temporary view of the session."""
        if self.views or len(parts) > 1:
            return False
        try:
            return bool(own(self.spark, "catalog").getTable(quote_name(parts)).isTemporary)
        except PySparkException:
            return False

    def catalog(self, name: str) -> Catalog:
        """A catalog of ours; in the query of a view, one that tells its server of the view.

        Raises:
            InvalidOptionError: it is not configured, or not completely.
        """
        if name not in self._loaded:
            with acting_in(self.spark):
                self._loaded[name] = load_catalog(name)
        return self._loaded[name]._referenced_by(self._views_of(name))

    def _views_of(self, catalog: str) -> list[tuple[str, ...]]:
        """The views of a catalog that lead to a name in it, as far as others do not come between.

        A server does not know the views of another catalog, and may have others of their names.
        """
        found = [*takewhile(lambda view: view.catalog == catalog, reversed(self.views))]
        return [view.parts for view in reversed(found)]

    def require_catalog(self, name: str) -> Catalog:
        """A catalog of ours that a statement needs.

        Raises:
            InvalidStatementError: no catalog has the name.
        """
        if self.is_catalog(name):
            return self.catalog(name)
        # It may have been configured in another way than by `conf.set`.
        read_catalogs_again(self.spark)
        for kept in ("_of_session", "_configured"):
            self.__dict__.pop(kept, None)
        if self.is_catalog(name):
            return self.catalog(name)
        known = self.catalogs()
        near = did_you_mean(name, known)
        raise InvalidStatementError(
            f"no catalog {name} is configured (there are {', '.join(known) or 'none'})"
            f"{'; ' + near if near else ''}; {how_to_configure(name)}"
        )

    @cached_property
    def _of_session(self) -> frozenset[str]:
        with acting_in(self.spark):
            return catalogs_of_active_session()

    @cached_property
    def _configured(self) -> frozenset[str]:
        return frozenset(configured_catalogs()) - self._of_session

    def _is_free(self, name: str) -> bool:
        return self.spark.conf.get(f"spark.sql.catalog.{name}", None) is None


AUDITED_BRANCH = "spark.wap.branch"
"""The session's setting for the branch to write, and to read once it exists."""

_BRANCH = "wap.branch"


def audit_options(spark: SparkSession, table: Table) -> dict[str, str]:
    """The session's branch or id for writes of a table; empty without `write.wap.enabled`.

    Raises:
        InvalidOptionError: the session has both.
    """
    if not WAP_ENABLED.of(table.properties):
        return {}
    setting = session_setting(spark)
    found = {
        name: value
        for name in ("wap.id", _BRANCH)
        if (value := setting(f"spark.{name}")) is not None
    }
    if len(found) > 1:
        raise InvalidOptionError(
            f"table {table.name}: the session has both spark.wap.id = {found['wap.id']!r} and "
            f"spark.wap.branch = {found[_BRANCH]!r}; unset one"
        )
    return found


def audited_branch(spark: SparkSession, table: Table) -> str | None:
    """The session's branch, which queries of a table read if it exists; None if there is none.

    Errors are those of `audit_options`.
    """
    branch = audit_options(spark, table).get(_BRANCH)
    return branch if branch in table.refs() else None


_DEFAULT_CATALOG = "spark.icebergpy.default-catalog"
"""The setting for the default catalog, used until a statement chooses another."""

_CHOSEN = "current namespace"


@dataclass(frozen=True, slots=True)
class CurrentNamespace:
    """Where names without a catalog are looked for.

    Attributes:
        catalog: one of ours; None while one of Spark's own is current.
        namespace: within the catalog. In the query of a view, it starts with the catalog's name if
            the catalog is Spark's own.
    """

    catalog: str | None = None
    namespace: tuple[str, ...] = ()


def current_namespace(spark: SparkSession) -> CurrentNamespace:
    """The namespace chosen by a statement of the session, or else its default catalog."""
    chosen = session_of(spark).kept.get(_CHOSEN)
    if chosen is None:
        chosen = CurrentNamespace(spark.conf.get(_DEFAULT_CATALOG, None))
        set_current_namespace(spark, chosen)
    found: CurrentNamespace = chosen
    return found


def set_current_namespace(spark: SparkSession, chosen: CurrentNamespace) -> None:
    """Sets the namespace for the session's following statements."""
    session_of(spark).kept[_CHOSEN] = chosen
