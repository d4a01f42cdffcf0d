"""Implements the catalog in a table of DynamoDB, in the layout of Java Iceberg and PyIceberg."""
