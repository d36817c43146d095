"""Stands in for the wheel in tests of the sidecar's life: see store.py."""
