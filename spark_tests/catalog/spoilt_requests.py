"""Spoils the requests of a catalog's operations one by one, and checks what is said of the ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from faulty_proxy import FaultyProxy, Spoil

from icebergds.catalog.base import Catalog
from icebergds.errors import IcebergError, NoSuchNamespaceError, NoSuchTableError
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing.catalog_steps import create_table, drop_table, new_table


@dataclass(frozen=True)
class Operation:
    """What a catalog does in a namespace, and whether it is done.

    Attributes:
        prepare: makes the namespace and what the operation needs.
    """

    name: str
    prepare: Callable[[Catalog, str], object]
    run: Callable[[Catalog, str], object]
    is_done: Callable[[Catalog, str], bool]

    def __str__(self) -> str:
        return self.name


def table_exists(catalog: Catalog, namespace: str, table: str) -> bool:
    try:
        catalog.load((namespace, table))
    except NoSuchTableError:
        return False
    return True


def namespace_exists(catalog: Catalog, namespace: str) -> bool:
    try:
        catalog.namespace_properties((namespace,))
    except NoSuchNamespaceError:
        return False
    return True


def _namespace(catalog: Catalog, namespace: str) -> None:
    catalog.create_namespace((namespace,), {})


def _table(catalog: Catalog, namespace: str) -> None:
    create_table(catalog, (namespace, "t"))


def _create(catalog: Catalog, namespace: str) -> None:
    catalog.create((namespace, "t"), new_table(catalog, (namespace, "t")))


def _commit(catalog: Catalog, namespace: str) -> None:
    operations = catalog.operations((namespace, "t"))
    operations.commit(operations.refresh(), [], [SetProperties({"k": "v"})])


CREATE = Operation("create", _namespace, _create, lambda c, n: table_exists(c, n, "t"))
COMMIT = Operation(
    "commit",
    _table,
    _commit,
    lambda c, n: "k" in c.load((n, "t")).metadata.properties,
)
DROP = Operation(
    "drop", _table, lambda c, n: drop_table(c, (n, "t")), lambda c, n: not table_exists(c, n, "t")
)
RENAME = Operation(
    "rename",
    _table,
    lambda c, n: c.rename((n, "t"), (n, "u")),
    lambda c, n: table_exists(c, n, "u") and not table_exists(c, n, "t"),
)
CREATE_NAMESPACE = Operation("create namespace", lambda c, n: None, _namespace, namespace_exists)
CHANGE_NAMESPACE = Operation(
    "change namespace",
    _namespace,
    lambda c, n: c.update_namespace_properties((n,), [], {"k": "v"}),
    lambda c, n: "k" in c.namespace_properties((n,)),
)
DROP_NAMESPACE = Operation(
    "drop namespace",
    _namespace,
    lambda c, n: c.drop_namespace((n,)),
    lambda c, n: not namespace_exists(c, n),
)
OPERATIONS = [
    CREATE,
    COMMIT,
    DROP,
    RENAME,
    CREATE_NAMESPACE,
    CHANGE_NAMESPACE,
    DROP_NAMESPACE,
]


def check_spoilt(
    operation: Operation,
    spoil: Spoil,
    direct: Catalog,
    proxied: Catalog,
    proxy: FaultyProxy,
    *,
    repaired: bool,
    deletes_files: bool,
) -> None:
    """Spoils each request of an operation in turn, and checks that its end is told truly.

    Args:
        direct: the catalog without the proxy.
        repaired: whether the operation must succeed all the same.
        deletes_files: whether files that are not used after a failure are deleted.
    """
    operation.prepare(direct, "unspoilt")
    proxy.seen.clear()
    operation.run(proxied, "unspoilt")
    for place, request in enumerate(list(proxy.seen)):
        namespace = f"n{place}"
        operation.prepare(direct, namespace)
        before = _metadata_files(direct, namespace) if deletes_files else None
        proxy.spoil("", *[None] * place, spoil)
        error = _error_of(operation, proxied, namespace)
        proxy.spoil("")
        done = operation.is_done(direct, namespace)
        assert error is None or not repaired, f"{request}: {error!r}"
        if error is None:
            assert done, f"{request}: it is not done"
        elif not error.outcome_unknown:
            assert not done, f"{request}: it is done, in spite of {error!r}"
            if deletes_files:
                assert _metadata_files(direct, namespace) == before
            operation.run(proxied, namespace)
            assert operation.is_done(direct, namespace)


def _error_of(operation: Operation, catalog: Catalog, namespace: str) -> IcebergError | None:
    try:
        operation.run(catalog, namespace)
    except IcebergError as error:
        return error
    return None


def _metadata_files(catalog: Catalog, namespace: str) -> set[str]:
    with contextlib.suppress(NoSuchNamespaceError, FileNotFoundError, IcebergError):
        location = catalog.new_table_location((namespace, "t"))
        return set(catalog.io.list(f"{location}/metadata"))
    return set()
