"""The instrumented process: an application on the SDK under test, and nothing of the runner."""
