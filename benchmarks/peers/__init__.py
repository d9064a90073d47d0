"""Other job systems doing the same work on the same machine in the same run.

Each has an environment of its own and an adapter (`adapters/`), a small program that adds no-op jobs with
100-byte arguments and runs a worker, as its documentation says. streamjobs and a bare loop take part by adapters
of the same kind.
"""
