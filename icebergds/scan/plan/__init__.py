"""Plans scans on the driver: prunes, joins deletes, packs tasks."""
