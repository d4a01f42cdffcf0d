"""Helps to test catalogs and storage: conformance suites and fault injection, shipped to users.

`catalog_conformance` and `view_conformance` test catalogs; `faults` and `faulty_system` fail
storage and commits at a chosen call.
"""
