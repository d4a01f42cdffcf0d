"""Implements the catalog in AWS's Glue Data Catalog."""
