"""Plans and commits writes: appends, overwrites, row-level changes, streaming batches."""
