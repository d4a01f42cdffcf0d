"""Plans reads from their options: scans, time travel, changes, streams."""
