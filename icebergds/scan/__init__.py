"""Planning on the driver, reading on executors."""
