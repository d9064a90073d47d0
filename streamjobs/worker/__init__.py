"""One worker: it claims, runs, settles, and keeps what it holds; one running service a file."""
