"""Tables, catalogs and scans as users see them: the top of the package."""
