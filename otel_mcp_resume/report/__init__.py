"""What leaves the process: metrics, spans and log records."""
