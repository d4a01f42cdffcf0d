"""From write options to a commit: appends, overwrites, row changes, streaming batches."""
