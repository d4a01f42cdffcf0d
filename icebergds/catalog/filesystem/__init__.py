"""The catalog of a directory: tables by their location, committed by file names."""
