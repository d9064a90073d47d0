"""What a job is and what follows from an outcome: pure values and functions."""
