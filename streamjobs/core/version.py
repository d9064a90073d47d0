"""The version of this package, once: workers tell theirs, and `--version` prints it."""

__version__ = "0.1.0"
