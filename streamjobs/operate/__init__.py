"""What operators see and do: jobs, dead jobs, counts."""
