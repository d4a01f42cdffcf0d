"""Commits changes to tables: one action per module, validated and retried."""
