"""A real client and a real server in one process, and the plugin that goes, or the process that ends, in between."""
