"""One small program for each job system; run by the Python of that system's own environment."""
