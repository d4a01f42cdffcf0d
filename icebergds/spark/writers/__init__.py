"""What `df.write.format("icebergpy")` and `df.writeTo` give in registered sessions."""
