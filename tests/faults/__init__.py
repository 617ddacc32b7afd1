"""Every point at which our code can fail, made to fail, one at a time: `python -m tests.faults`."""
