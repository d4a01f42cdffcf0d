"""From read options to a planned read: scans, time travel, changes, streams."""
