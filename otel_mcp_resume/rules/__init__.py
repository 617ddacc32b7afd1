"""The law: pure functions over frozen values. No I/O, no clock, no OpenTelemetry, no SDK names."""
