"""The JSON of metadata (spec: Appendix C)."""
