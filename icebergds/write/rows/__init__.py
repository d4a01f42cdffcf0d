"""From batches to rows of files: matched, partitioned, sorted, rolled."""
