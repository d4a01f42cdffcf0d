"""The catalog and namespace that a session's statements have chosen with USE."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from icebergds.spark.registered import session_of

DEFAULT_CATALOG = "spark.icebergpy.default-catalog"
"""The setting that names the catalog of names without one, until a statement chooses another."""

_CHOSEN = "current namespace"


@dataclass(frozen=True, slots=True)
class CurrentNamespace:
    """Where names without a catalog are looked for.

    Attributes:
        catalog: one of ours; None while Spark's own catalogs count.
        namespace: in the catalog. In the queries of views it begins with the catalog if that is one
            of Spark's.
    """

    catalog: str | None = None
    namespace: tuple[str, ...] = ()


def current_namespace(spark: SparkSession) -> CurrentNamespace:
    """What the session's statements have chosen, or else its default catalog."""
    chosen = session_of(spark).kept.get(_CHOSEN)
    if chosen is None:
        chosen = CurrentNamespace(spark.conf.get(DEFAULT_CATALOG, None))
        set_current_namespace(spark, chosen)
    found: CurrentNamespace = chosen
    return found


def set_current_namespace(spark: SparkSession, chosen: CurrentNamespace) -> None:
    """Chooses for the statements that follow in the session."""
    session_of(spark).kept[_CHOSEN] = chosen
