"""The command line. One file per command group; `show` prints, `settings` knows what was asked for where.

What a command needs is imported when it runs: `--help` loads neither redis nor asyncio.
"""
