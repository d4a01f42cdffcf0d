"""Reads `spark.readStream.format("icebergpy")`: a table's rows, then what is committed later.

One reader lives as long as its query and plans micro-batches; copies of it read them in tasks.
Spark 4.2 and later pass the start offset and a limit; before, the reader keeps the offset itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from icebergds.operations.read.stream_files import StreamFiles
from icebergds.operations.read.stream_options import StreamOptions
from icebergds.operations.read.stream_read import Limits, StreamOffset, TableStream
from icebergds.scan.packing import pack_task_group
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.errors import without_frames
from icebergds.spark.reader import IcebergPartition, read_partition

try:
    from pyspark.sql.streaming import datasource as admission
except ImportError:  # Spark 4.1
    admission = None  # type: ignore[assignment]


class IcebergStreamReader(DataSourceStreamReader):
    """Reads the rows of a table that a query has not read yet.

    The planning function is not pickled with the reader, so tasks need not import its modules.

    Args:
        plan: what all tasks share.
        options: of the stream.
        load: loads the stream over the table's current state.
    """

    def __init__(
        self, plan: ReadPlan, options: StreamOptions, load: Callable[[], TableStream]
    ) -> None:
        self._plan = plan
        self._options = options
        self._load: Callable[[], TableStream] | None = load
        self._loaded: TableStream | None = None
        # Whether the trigger that loaded it has yet to use it to find its end.
        self._is_new = False
        self._known: StreamFiles | None = StreamFiles()
        self._first: StreamOffset | None = None
        self._reached: StreamOffset | None = None
        self._target: int | None = None

    @without_frames()
    def initialOffset(self) -> dict[str, Any]:
        """The offset at which a query without a checkpoint starts."""
        if self._first is None:
            self._first = self._newest().first()
        self._reached = self._first
        return self._first.to_json()

    @without_frames()
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """The offset at which the next micro-batch ends."""
        reached = self._reached if start is None else StreamOffset.from_json(start)
        stream = self._newest()
        self._is_new = False
        if reached is None:
            reached = stream.first()
        limits = Limits(self._options.max_files, self._options.max_rows)
        if admission is not None and isinstance(limit, admission.ReadAllAvailable):
            limits = Limits()
        self._reached = stream.next(reached, limits)
        return self._reached.to_json()

    def getDefaultReadLimit(self) -> Any:
        """The limit that Spark passes to `latestOffset`, unless the trigger reads everything."""
        options = self._options
        if options.max_files is not None:
            return admission.ReadMaxFiles(options.max_files)
        if options.max_rows is not None:
            return admission.ReadMaxRows(options.max_rows)
        return admission.ReadAllAvailable()

    @without_frames()
    def prepareForTriggerAvailableNow(self) -> None:
        """Pins the current snapshot as the end of a query with `trigger(availableNow=True)`."""
        head = self._newest().head
        self._target = None if head is None else head.snapshot_id

    @without_frames()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The task groups between two offsets."""
        until = StreamOffset.from_json(end)
        loaded = self._loaded
        # A batch of an earlier run may end with a snapshot that was not in the loaded state.
        if loaded is None or until != self._reached:
            loaded = self._load_stream()
        # Before Spark 4.2 this is the only way to learn where a restarted query continues.
        self._reached = until
        stream = self._until_target(loaded)
        task_groups = stream.task_groups(StreamOffset.from_json(start), until)
        return [IcebergPartition(pack_task_group(task_group)) for task_group in task_groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the exact Arrow schema that Spark requires."""
        return read_partition(self._plan, partition)

    def _newest(self) -> TableStream:
        """The current state of the table, loaded once for the calls of one trigger."""
        if self._loaded is None or not self._is_new:
            self._loaded, self._is_new = self._load_stream(), True
        return self._until_target(self._loaded)

    def _until_target(self, stream: TableStream) -> TableStream:
        target = self._target
        head = None if target is None else stream.state.metadata.snapshot_by_id(target)
        return stream if head is None else replace(stream, head=head)

    def _load_stream(self) -> TableStream:
        assert self._load is not None, "streams are planned where the reader was created"
        has_limits = self._options.max_files is not None or self._options.max_rows is not None
        return replace(self._load(), known=self._known if has_limits else None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_load": None, "_loaded": None, "_known": None}


if admission is not None:
    # Spark checks with isinstance, and Spark 4.1 has no such base class to inherit from.
    admission.SupportsTriggerAvailableNow.register(IcebergStreamReader)
