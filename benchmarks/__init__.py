"""Measurements of streamjobs, each beside a bare loop that is the floor of its cost.

`python -m benchmarks list` names the scenarios, `python -m benchmarks run enqueue drain` runs them
against a server of their own. One document (`document.py`) holds every result; a scenario is a
name, a summary and a function that yields results (`registry.py`).
"""
