"""Upgrades and removals of whole tables."""
