"""Views: their metadata, its JSON and its updates (view spec)."""
