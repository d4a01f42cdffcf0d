"""Computes and commits statistics: distinct values of columns, and counts of partitions."""
