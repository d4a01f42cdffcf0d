"""Table encryption: keys, key management services and encrypted streams (spec: Encryption Keys)."""
