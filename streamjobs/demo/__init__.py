"""The demo: index this machine's Python standard library while things go wrong.

`run.run` is the whole show; `jobs` holds the app and its one handler; `index` does the real work and
knows nothing of jobs; `check` is the second program, which believes none of them.
"""
