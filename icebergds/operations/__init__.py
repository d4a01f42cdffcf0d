"""What statements do, without Spark: options, reads, writes, maintenance."""
