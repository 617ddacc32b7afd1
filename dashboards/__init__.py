"""The code that writes the dashboards. What users need is the JSON and YAML beside it."""
