"""Peers that send whatever they like: `python -m tests.fuzz --inputs 200000`."""
