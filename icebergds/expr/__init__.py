"""Defines filters: predicate nodes, binding by field id, projections, evaluation."""
