"""What the plugin costs: `python -m tests.bench`, from the root of the source tree.

Real SDK servers and clients in processes of their own, over loopback. All arms (the bare SDK, the plugin, others) run
in one go and in turns, so that whatever slows the machine down slows all of them down.
"""
