"""The table format as values; knows no files, no Arrow, no Spark."""
