"""`streamjobs`: the root of all commands."""

from streamjobs.cli.commands import LazyGroup, Root

cli = Root(
    "streamjobs",
    help="Reliable background jobs on Redis Streams.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands_in={
        "worker": ("streamjobs.cli.worker", "worker", "Run jobs until told to stop."),
        "enqueue": ("streamjobs.cli.enqueue", "enqueue", "Send jobs."),
        "stats": ("streamjobs.cli.stats", "stats", "Show what each queue holds."),
        "queue": ("streamjobs.cli.queue", "queue", "Show, limit, pause, empty and delete queues."),
        "workers": ("streamjobs.cli.workers", "workers", "See workers, quiet and stop them."),
        "job": ("streamjobs.cli.job", "job", "Find jobs, wait for them, cancel them."),
        "dead": ("streamjobs.cli.dead", "dead", "See dead jobs, replay, purge or export them."),
        "cron": ("streamjobs.cli.cron", "cron", "See, run and pause crons."),
        "doctor": ("streamjobs.cli.doctor", "doctor", "Look the server and the queues over."),
        "exporter": ("streamjobs.cli.exporter", "exporter", "Serve what the queues hold to Prometheus."),
        "bench": ("streamjobs.cli.bench", "bench", "Measure it on this machine."),
        "lua": ("streamjobs.cli.lua", "lua", "Show the scripts that the server runs."),
        "completion": ("streamjobs.cli.completion", "completion", "Let a shell complete commands and names."),
        "demo": ("streamjobs.cli.demo", "demo", "See it all at work on this machine's own Python."),
    },
)

__all__ = ["LazyGroup", "cli", "main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    cli.main(prog_name="streamjobs")
