"""Memory: what was seen so far. Plain synchronous state machines that apply `rules` and return facts."""
