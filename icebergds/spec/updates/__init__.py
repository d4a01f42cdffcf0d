"""Changes table metadata: updates, requirements, and how they are applied."""
