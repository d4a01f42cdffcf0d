"""Turns batches into rows of files: matches, partitions, sorts and rolls."""
