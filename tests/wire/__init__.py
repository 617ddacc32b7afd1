"""Black-box cases: what must be reported when a situation is provoked on the wire. See README.md."""
