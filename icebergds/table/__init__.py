"""The face that people use."""
