"""Reads and checks values of options and arguments."""
