"""Models the table format as values, without files, Arrow or Spark."""
