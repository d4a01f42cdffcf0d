"""Plans scans on the driver and reads their tasks on executors."""
