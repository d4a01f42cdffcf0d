"""What the formats of data files share: field ids, projection, metrics, properties."""
