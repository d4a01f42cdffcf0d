"""The rules of commits, and for each the fewest commits that go wrong without it."""

from __future__ import annotations

from dataclasses import dataclass

KEYED = (
    "append",
    "rewrite delete",
    "rewrite update",
    "delete",
    "update",
    "upsert",
    "upsert twice",
)
"""Operations on the rows of a key."""

OF_TABLE = ("overwrite", "compact", "compact renumbered", "compact by history", "convert")
"""Operations on all rows."""


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """A commit of a schedule; snapshots are numbered from 1, the table's creation.

    Attributes:
        key: 0 if the operation is one of all rows.
        read: the snapshot that it was prepared from.
        parent: the snapshot that it was committed on.
    """

    op: str
    key: int
    read: int
    parent: int


@dataclass(frozen=True, slots=True)
class Model:
    """What writers can do to a table, at most three at a time.

    Attributes:
        commits: how many there are, the table's creation not counted.
        keys: how many keys there are.
        vectors: whether positions are deleted by deletion vectors.
        serializable: the isolation level; otherwise that of snapshots.
        off: the rules that are not followed.
    """

    operations: frozenset[str]
    commits: int
    keys: int = 2
    vectors: bool = False
    serializable: bool = False
    off: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule that is switched off, in a model in which that is found.

    Attributes:
        rule: its name in the model.
        invariant: the first one that fails without it.
        operations: what writers do.
        steps: TLC's counterexample.

    The other attributes are those of the model.
    """

    rule: str
    invariant: str
    operations: tuple[str, ...]
    steps: tuple[Step, ...]
    keys: int = 2
    vectors: bool = False
    serializable: bool = False

    @property
    def model(self) -> Model:
        """The model without the rule."""
        return Model(
            frozenset(self.operations),
            len(self.steps),
            self.keys,
            self.vectors,
            self.serializable,
            frozenset({self.rule}),
        )

    @property
    def rolls_back(self) -> bool:
        """Whether a commit whose parent is not the last one follows a rollback."""
        return "roll back" in self.operations


MUTATIONS = (
    Mutation(
        "head",
        "NoRowLost",
        ("append",),
        (Step("append", 1, 1, 1), Step("append", 1, 1, 1)),
    ),
    Mutation(
        "inherited",
        "NoRowResurrected",
        ("append", "upsert"),
        (Step("append", 1, 1, 1), Step("upsert", 1, 1, 2)),
    ),
    Mutation(
        "history",
        "NoRowLost",
        ("delete", "compact", "roll back"),
        (Step("delete", 1, 1, 1), Step("compact", 0, 2, 1)),
    ),
    Mutation(
        "added rows",
        "NoRowResurrected",
        ("append", "delete"),
        (Step("append", 1, 1, 1), Step("delete", 1, 1, 2)),
        serializable=True,
    ),
    Mutation(
        "overwritten deletes",
        "NoRowResurrected",
        ("delete", "overwrite"),
        (Step("delete", 1, 1, 1), Step("overwrite", 0, 1, 2)),
    ),
    Mutation(
        "overwritten files",
        "NoRowResurrected",
        ("rewrite delete", "overwrite"),
        (Step("rewrite delete", 1, 1, 1), Step("overwrite", 0, 1, 2)),
    ),
    Mutation(
        "rewritten rows",
        "NoRowResurrected",
        ("delete", "rewrite delete"),
        (Step("delete", 1, 1, 1), Step("rewrite delete", 2, 1, 2)),
    ),
    Mutation(
        "removed files",
        "NoRowTwice",
        ("rewrite delete",),
        (Step("rewrite delete", 1, 1, 1), Step("rewrite delete", 1, 1, 2)),
    ),
    Mutation(
        "replaced rows",
        "NoRowResurrected",
        ("delete", "update"),
        (Step("delete", 1, 1, 1), Step("update", 1, 1, 2)),
    ),
    Mutation(
        "files exist",
        "NoRowResurrected",
        ("compact", "delete"),
        (Step("compact", 0, 1, 1), Step("delete", 1, 1, 2)),
    ),
    Mutation(
        "deleted files",
        "NoRowResurrected",
        ("rewrite delete", "update"),
        (Step("rewrite delete", 1, 1, 1), Step("update", 1, 1, 2)),
        keys=1,
    ),
    Mutation(
        "vectors",
        "OneVector",
        ("delete",),
        (Step("delete", 1, 1, 1), Step("delete", 1, 1, 2)),
        vectors=True,
    ),
    Mutation(
        "moved deletes",
        "NoRowResurrected",
        ("delete", "compact"),
        (Step("delete", 1, 1, 1), Step("compact", 0, 1, 2)),
    ),
    Mutation(
        "kept number",
        "NoRowResurrected",
        ("upsert", "compact"),
        (Step("upsert", 1, 1, 1), Step("compact", 0, 1, 2)),
    ),
    Mutation(
        "renumbered",
        "NoRowResurrected",
        ("upsert", "compact renumbered"),
        (Step("upsert", 1, 1, 1), Step("compact renumbered", 0, 1, 2)),
    ),
    Mutation(
        "compacted files",
        "NoRowTwice",
        ("compact",),
        (Step("compact", 0, 1, 1), Step("compact", 0, 1, 2)),
    ),
    Mutation(
        "compared files",
        "NoRowResurrected",
        ("upsert", "compact", "convert"),
        (Step("upsert", 1, 1, 1), Step("compact", 0, 1, 2), Step("convert", 0, 2, 3)),
    ),
    Mutation(
        "known vectors",
        "OneVector",
        ("upsert", "delete", "convert"),
        (Step("upsert", 1, 1, 1), Step("delete", 1, 1, 2), Step("convert", 0, 2, 3)),
        vectors=True,
    ),
    Mutation(
        "converted deletes",
        "NoRowResurrected",
        ("upsert", "convert", "compact by history"),
        (Step("upsert", 1, 1, 1), Step("convert", 0, 2, 2), Step("compact by history", 0, 1, 3)),
    ),
    Mutation(
        "older rows",
        "NoRowLost",
        ("upsert",),
        (Step("upsert", 1, 1, 1),),
    ),
    Mutation(
        "own commit",
        "NoRowResurrected",
        ("upsert twice",),
        (Step("upsert twice", 1, 1, 1),),
    ),
    Mutation(
        "dangling",
        "NoRowResurrected",
        ("rewrite delete", "upsert twice", "append"),
        (
            Step("rewrite delete", 1, 1, 1),
            Step("upsert twice", 1, 1, 2),
            Step("append", 1, 1, 3),
        ),
        keys=1,
    ),
)
