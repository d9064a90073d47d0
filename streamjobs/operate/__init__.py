"""What operators see and do: jobs, dead letters, counts. Conversations of requests, driven by either executor."""
