"""The catalog in a database, shared with the JDBC and SQL catalogs of others."""
