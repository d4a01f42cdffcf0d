"""Lets a registered session's reader return DataFrames that prune by their own conditions."""
