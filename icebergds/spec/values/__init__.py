"""Single values: binary form, dates, decimals, text."""
