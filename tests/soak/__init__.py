"""Servers and clients that live for an hour while their streams are cut: `python -m tests.soak --minutes 60`."""
