------------------------------ MODULE commit_rules ------------------------------
(* A table, and the rules by which its commits follow each other.                 *)
(*                                                                                *)
(* A writer reads a snapshot, prepares files, and commits them on the head of the *)
(* branch, or is refused. Its operation is chosen when it commits: what it reads  *)
(* does not depend on when others begin. So a step is "the operation that read    *)
(* snapshot `read` is committed", and a writer is busy from `read` until then.    *)
(*                                                                                *)
(* Each snapshot has, beside its files, `truth`: the rows that it must have, by   *)
(* the meaning of the operations in the order of their commits. Every rule of the *)
(* code has a name here; the names in `Off` are switched off.                     *)
EXTENDS Naturals, FiniteSets, Sequences, TLC

CONSTANTS
  Keys,          \* of rows; the first file has a row of each
  Writers,       \* how many may be busy at the same time
  Commits,       \* how many there are, the table's creation not counted
  Vectors,       \* whether positions are deleted by deletion vectors (format version 3)
  Serializable,  \* whether writers ask for this isolation level, or for that of snapshots
  Operations,    \* the names of those that writers may choose
  Off            \* the names of rules that are not followed

VARIABLES
  log,   \* all snapshots, in the order of their commits; the index is the sequence number
  head   \* the index of the branch's snapshot

On(rule) == rule \notin Off
Min(numbers) == CHOOSE n \in numbers : \A m \in numbers : n <= m

-----------------------------------------------------------------------------------
(* Reading a snapshot. Row: key, made (the commit). File: id, number (its data    *)
(* sequence number), rows. Delete: by ("position" or "key"), number, and either   *)
(* file and rows or a key.                                                        *)

Applies(d, f, row) ==
  \/ /\ d.by = "position"
     /\ d.file = f.id
     /\ row \in d.rows
     /\ IF On("own commit") THEN d.number >= f.number ELSE d.number > f.number
  \/ /\ d.by = "key"
     /\ d.key = row.key
     /\ IF On("older rows") THEN d.number > f.number ELSE d.number >= f.number

Live(s, f) == {row \in f.rows : \A d \in s.deletes : ~Applies(d, f, row)}
Rows(s) == UNION {Live(s, f) : f \in s.data}
Ids(files) == {f.id : f \in files}
OfKey(rows, key) == {row \in rows : row.key = key}
PositionsOf(deletes, id) == {d \in deletes : d.by = "position" /\ d.file = id}

ByPosition(number, id, rows) ==
  [by |-> "position", number |-> number, file |-> id, rows |-> rows, key |-> 0]
ByKey(number, key) ==
  [by |-> "key", number |-> number, file |-> 0, rows |-> {}, key |-> key]
File(id, number, rows) ==
  IF rows = {} THEN {} ELSE {[id |-> id, number |-> number, rows |-> rows]}

-----------------------------------------------------------------------------------
(* What others have committed since a snapshot was read.                          *)

RECURSIVE History(_)
History(i) == IF i = 0 THEN {} ELSE {i} \cup History(log[i].parent)

\* Of `base`, back to `read`; back to the first one if `read` is not in it.
Since(base, read) ==
  IF read \in History(base) THEN History(base) \ History(read) ELSE History(base)

Before(i) == log[log[i].parent]
AddedData(i) == IF i = 1 THEN log[i].data ELSE log[i].data \ Before(i).data
RemovedData(i) == IF i = 1 THEN {} ELSE Before(i).data \ log[i].data
AddedDeletes(i) == IF i = 1 THEN {} ELSE log[i].deletes \ Before(i).deletes

\* Each as its function in icebergds/commit/validation.py.
KnownHistory(base, read) == On("history") => read \in History(base)

NoAddedData(since, keys) ==
  \A i \in since : log[i].kind \notin {"replace", "delete"} =>
    \A f \in AddedData(i) : \A row \in f.rows : row.key \notin keys

NoFileRemoved(since, ids, skipDeletes) ==
  \A i \in since : log[i].kind = "append" \/ (skipDeletes /\ log[i].kind = "delete")
                   \/ Ids(RemovedData(i)) \cap ids = {}

NoNewVector(since, ids) ==
  \A i \in since : log[i].kind # "append" =>
    \A d \in AddedDeletes(i) : ~(d.by = "position" /\ d.file \in ids)

NoNewDelete(since, ids, ignoreKeys) ==
  \A i \in since : log[i].kind \notin {"append", "replace"} =>
    \A d \in AddedDeletes(i) :
      IF d.by = "position" THEN d.file \notin ids ELSE ignoreKeys

-----------------------------------------------------------------------------------
(* The files of a new snapshot. Deletes that are older than all data are dropped, *)
(* and vectors of files that are gone.                                            *)

NewSnapshot(op, key, read, base, kind, added, gone, addedDeletes, goneDeletes, truth) ==
  LET n == Len(log) + 1
      kept == {f \in log[base].data : f.id \notin gone}
      oldest == Min({f.number : f \in kept \cup added} \cup {n})
      isDangling(d) ==
        \/ IF On("dangling") THEN d.number < oldest ELSE d.number <= oldest
        \/ Vectors /\ d.by = "position" /\ d.file \in gone
  IN /\ log' = Append(log,
          [op |-> op, key |-> key, read |-> read, parent |-> base, kind |-> kind,
           data |-> kept \cup added,
           deletes |-> {d \in log[base].deletes \ goneDeletes : ~isDangling(d)} \cup addedDeletes,
           truth |-> truth])
     /\ head' = n

\* The number of files that a commit adds: known when it succeeds, not when it is tried first.
NewNumber(read) == IF On("inherited") THEN Len(log) + 1 ELSE read + 1

\* The rows that an operation on a key replaces, if it saw `seen`, and the table has `truth`.
Replaced(truth, seen, key) == IF Serializable THEN OfKey(truth, key) ELSE truth \cap seen

-----------------------------------------------------------------------------------
(* Operations. Arguments: the key; the snapshot that was read; the base of the    *)
(* commit.                                                                        *)

DoAppend(key, read, base) ==
  LET n == Len(log) + 1
      new == {[key |-> key, made |-> n]}
  IN NewSnapshot("append", key, read, base, "append", File(n, NewNumber(read), new), {}, {}, {},
                 log[head].truth \cup new)

\* Writes all rows again, as INSERT OVERWRITE t SELECT * FROM t.
DoOverwrite(key, read, base) ==
  LET n == Len(log) + 1
      since == Since(base, read)
      rows == Rows(log[read])
  IN /\ rows # {}
     /\ KnownHistory(base, read)
     /\ Serializable /\ On("added rows") => NoAddedData(since, Keys)
     /\ On("overwritten deletes") =>
          \A i \in since : log[i].kind \in {"append", "replace"} \/ AddedDeletes(i) = {}
     /\ On("overwritten files") =>
          \A i \in since : log[i].kind = "append" \/ RemovedData(i) = {}
     /\ NewSnapshot("overwrite", key, read, base, "overwrite",
                    File(n, NewNumber(read), rows), Ids(log[base].data), {}, log[base].deletes,
                    IF Serializable THEN log[head].truth ELSE log[head].truth \cap log[read].truth)

\* Copy-on-write: an update writes one row instead of those that it saw.
DoRewrite(op, key, read, base) ==
  LET n == Len(log) + 1
      since == Since(base, read)
      truth == log[head].truth
      seen == OfKey(Rows(log[read]), key)
      files == {f \in log[read].data : Live(log[read], f) \cap seen # {}}
      new == IF op = "rewrite update" THEN {[key |-> key, made |-> n]} ELSE {}
      rows == (UNION {Live(log[read], f) : f \in files} \ seen) \cup new
  IN /\ seen # {}
     /\ KnownHistory(base, read)
     /\ On("rewritten rows") => NoNewDelete(since, Ids(files), FALSE)
     /\ Serializable /\ On("added rows") => NoAddedData(since, {key})
     /\ On("removed files") => files \subseteq log[base].data
     /\ NewSnapshot(op, key, read, base, IF rows = {} THEN "delete" ELSE "overwrite",
                    File(n, NewNumber(read), rows), Ids(files), {}, {},
                    (truth \ Replaced(truth, seen, key)) \cup (IF seen \subseteq truth THEN new ELSE {}))

\* Merge-on-read, by position.
DoDelta(op, key, read, base) ==
  LET n == Len(log) + 1
      since == Since(base, read)
      truth == log[head].truth
      seen == OfKey(Rows(log[read]), key)
      files == {f \in log[read].data : Live(log[read], f) \cap seen # {}}
      ids == Ids(files)
      isUpdate == op = "update"
      new == IF isUpdate THEN {[key |-> key, made |-> n]} ELSE {}
      older(f) == IF Vectors THEN PositionsOf(log[read].deletes, f.id) ELSE {}
      deletes == {ByPosition(NewNumber(read), f.id,
                             (Live(log[read], f) \cap seen) \cup UNION {d.rows : d \in older(f)})
                  : f \in files}
      replaced == UNION {older(f) : f \in files}
  IN /\ seen # {}
     /\ KnownHistory(base, read)
     /\ On("files exist") =>
          NoFileRemoved(since, ids, IF On("deleted files") THEN ~isUpdate ELSE TRUE)
     /\ Vectors /\ On("vectors") => NoNewVector(since, ids)
     /\ isUpdate /\ On("replaced rows") => NoNewDelete(since, ids, FALSE)
     /\ Serializable /\ On("added rows") => NoAddedData(since, {key})
     /\ On("removed files") => replaced \subseteq log[base].deletes
     /\ NewSnapshot(op, key, read, base, IF isUpdate THEN "overwrite" ELSE "delete",
                    File(n, NewNumber(read), new), {}, deletes, replaced,
                    (truth \ Replaced(truth, seen, key)) \cup (IF seen \subseteq truth THEN new ELSE {}))

\* By key, without reading. "upsert twice" writes another row of the key first, which a later one
\* of the same commit replaces.
DoUpsert(op, key, read, base) ==
  LET n == Len(log) + 1
      number == NewNumber(read)
      new == [key |-> key, made |-> n]
      early == IF op = "upsert twice" THEN {[key |-> key, made |-> 100 + n]} ELSE {}
      truth == log[head].truth
  IN NewSnapshot(op, key, read, base, "overwrite", File(n, number, {new} \cup early), {},
                 {ByKey(number, key)}
                   \cup (IF early = {} THEN {} ELSE {ByPosition(number, n, early)}),
                 {}, (truth \ OfKey(truth, key)) \cup {new})

\* Replaces all files. New deletes by position are moved to the new file; new deletes by key apply
\* to it, too, because it keeps the number of the snapshot that was read.
DoCompact(op, key, read, base) ==
  LET n == Len(log) + 1
      files == log[read].data
      rows == Rows(log[read])
      keeps == op = "compact"
      number == IF keeps /\ On("kept number") THEN read ELSE NewNumber(read)
      unknown == log[base].deletes \ log[read].deletes
      deleted(d) == {row \in rows : \E f \in files : row \in f.rows /\ Applies(d, f, row)}
      moved == UNION {deleted(d) : d \in {d \in unknown : d.by = "position"}}
  IN /\ files # {}
     /\ KnownHistory(base, read)
     /\ keeps \/ ~On("renumbered") \/ \A d \in unknown : d.by = "position"
     /\ On("compacted files") => files \subseteq log[base].data
     /\ NewSnapshot(op, key, read, base, "replace", File(n, number, rows), Ids(files),
                    IF On("moved deletes") /\ moved # {} THEN {ByPosition(number, n, moved)} ELSE {},
                    {}, log[head].truth)

\* As libraries do that move no deletes, but look for new ones in the history.
DoCompactByHistory(op, key, read, base) ==
  LET n == Len(log) + 1
      files == log[read].data
  IN /\ files # {}
     /\ KnownHistory(base, read)
     /\ On("rewritten rows") => NoNewDelete(Since(base, read), Ids(files), TRUE)
     /\ On("removed files") => files \subseteq log[base].data
     /\ NewSnapshot(op, key, read, base, "replace", File(n, read, Rows(log[read])), Ids(files),
                    {}, {}, log[head].truth)

\* Replaces deletes by key with deletes by position.
DoConvert(op, key, read, base) ==
  LET r == log[read]
      b == log[base]
      targets == {d \in r.deletes : d.by = "key"}
      files == {f \in r.data : \E d \in targets : d.number > f.number}
      positions == {d \in r.deletes : d.by = "position"}
      hit(f) == {row \in f.rows : /\ \E d \in targets : Applies(d, f, row)
                                  /\ \A d \in positions : ~Applies(d, f, row)}
      older(f) == IF Vectors THEN PositionsOf(r.deletes, f.id) ELSE {}
      hits == {f \in files : hit(f) # {} /\ f \in b.data}
      isOutdated(f) ==
        \/ \E d \in targets : d.number > f.number /\ d \notin b.deletes
        \/ IF Vectors THEN PositionsOf(b.deletes, f.id) # older(f)
           ELSE \E d \in b.deletes : d.by = "position" /\ d \notin r.deletes
      isNeeded(d) == \E f \in b.data \ files : d.number > f.number /\ OfKey(f.rows, d.key) # {}
      live == targets \cap b.deletes
  IN /\ live # {}
     /\ KnownHistory(base, read)
     /\ On("compared files") => \A d \in live : ~isNeeded(d)
     /\ On("known vectors") => \A f \in hits : ~isOutdated(f)
     /\ NewSnapshot(op, key, read, base, IF On("converted deletes") THEN "overwrite" ELSE "replace",
                    {}, {},
                    {ByPosition(NewNumber(read), f.id, hit(f) \cup UNION {d.rows : d \in older(f)})
                     : f \in hits},
                    live \cup UNION {older(f) : f \in hits}, log[head].truth)

-----------------------------------------------------------------------------------

Busy(instant) == {i \in 2..Len(log) : log[i].read <= instant /\ instant < i}

Commit(op, key, read) ==
  LET base == IF On("head") THEN head ELSE read
  IN /\ op \in Operations
     /\ Len(log) <= Commits
     /\ \A instant \in read..Len(log) : Cardinality(Busy(instant)) < Writers
     /\ CASE op = "append" -> DoAppend(key, read, base)
          [] op = "overwrite" -> DoOverwrite(key, read, base)
          [] op \in {"rewrite delete", "rewrite update"} -> DoRewrite(op, key, read, base)
          [] op \in {"delete", "update"} -> DoDelta(op, key, read, base)
          [] op \in {"upsert", "upsert twice"} -> DoUpsert(op, key, read, base)
          [] op \in {"compact", "compact renumbered"} -> DoCompact(op, key, read, base)
          [] op = "compact by history" -> DoCompactByHistory(op, key, read, base)
          [] op = "convert" -> DoConvert(op, key, read, base)

OfTable == {"overwrite", "compact", "compact renumbered", "compact by history", "convert"}
OfKeys == {"append", "rewrite delete", "rewrite update", "delete", "update", "upsert",
           "upsert twice"}

Rollback ==
  /\ "roll back" \in Operations
  /\ Len(log) <= Commits
  /\ \E i \in History(head) \ {head} : head' = i
  /\ UNCHANGED log

Init ==
  LET rows == {[key |-> key, made |-> 1] : key \in Keys}
  IN /\ log = <<[op |-> "create", key |-> 0, read |-> 0, parent |-> 0, kind |-> "append",
                 data |-> File(1, 1, rows), deletes |-> {}, truth |-> rows]>>
     /\ head = 1

Next ==
  \/ \E read \in 1..Len(log) :
       \/ \E op \in OfKeys, key \in Keys : Commit(op, key, read)
       \/ \E op \in OfTable : Commit(op, 0, read)
  \/ Rollback

Spec == Init /\ [][Next]_<<log, head>>

\* What later steps depend on: states that are equal in it are tried once. Keys are alike, too.
View ==
  <<head,
    [i \in 1..Len(log) |->
       [log[i] EXCEPT !.op = log[i].op \in OfTable \ {"overwrite"}, !.key = 0, !.read = 0]],
    [instant \in 1..Len(log) |-> Cardinality(Busy(instant))]>>
Symmetry == Permutations(Keys)

-----------------------------------------------------------------------------------
(* Invariants. Those of rows hold for each snapshot when it becomes the head. What *)
(* does not hold is shown by the commits that lead there.                          *)

Now == log[head]

Shown ==
  PrintT(<<"steps",
           [i \in 1..Len(log) |-> <<log[i].op, log[i].key, log[i].read, log[i].parent>>]>>)
Holds(condition) == condition \/ (Shown /\ FALSE)

NoRowLost == Holds(Now.truth \subseteq Rows(Now))
NoRowResurrected == Holds(Rows(Now) \subseteq Now.truth)
NoRowTwice ==
  Holds(\A f, g \in Now.data : f.id # g.id => Live(Now, f) \cap Live(Now, g) = {})
OneVector ==
  Holds(Vectors => \A f \in Now.data : Cardinality(PositionsOf(Now.deletes, f.id)) <= 1)
\* A file is not newer than its snapshot, and all snapshots are newer than their parents.
NumbersAscend ==
  Holds(/\ \A f \in Now.data : f.number <= head
        /\ \A d \in Now.deletes : d.number <= head
        /\ Now.parent < head)
MaintenanceKeepsRows ==
  Holds(Now.op \in OfTable \ {"overwrite"} => Rows(Now) = Rows(Before(head)))
=================================================================================
