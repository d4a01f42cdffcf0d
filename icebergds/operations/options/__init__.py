"""Parses and checks options and arguments."""
