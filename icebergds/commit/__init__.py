"""What the driver does to a table: one action a module, retried and validated."""
