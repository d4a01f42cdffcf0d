"""Predicates: nodes, binding by field id, projections, evaluation."""
