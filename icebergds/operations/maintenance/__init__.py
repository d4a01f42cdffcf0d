"""Upgrades and purges tables."""
