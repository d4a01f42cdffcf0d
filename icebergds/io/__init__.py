"""Storage behind one protocol."""
