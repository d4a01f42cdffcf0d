"""Reads position deletes, encodes deletion vectors, compares and hashes equality keys."""
