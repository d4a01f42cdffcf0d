"""Provides the public API: tables, catalogs and scans."""
