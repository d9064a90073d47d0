"""The soak: producers and workers under a seeded mix of faults, then all that they did is judged.

`plan.py` draws the faults; `field.py` has the processes, which `jobs.py`, `worker.py` and `producer.py`
are; `faults.py` makes the faults; `soak.py` runs it all; `recovery.py` and `verdict.py` say what it
has shown. What is judged, and how, is the checker's of the fault tests, so a soak needs a checkout.
"""
