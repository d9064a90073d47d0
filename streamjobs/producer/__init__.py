"""How jobs are sent: natural batching, idempotent batches, one shell for asyncio and one for threads."""
