"""Implements `df.write.format("icebergpy")` and `df.writeTo` in registered sessions."""
