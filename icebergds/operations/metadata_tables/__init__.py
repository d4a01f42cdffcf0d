"""Shows what a table's metadata holds as tables, with Java Iceberg's names and columns."""
