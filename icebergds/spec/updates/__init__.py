"""Changes of table metadata: updates, requirements, and their application."""
