"""The examples that `--help` shows; docs/cli.md has the same, and says more of them."""

LINES = r"""
streamjobs worker -A jobs:app -Q web,mail -c 50
streamjobs enqueue -A jobs:app greet Ada --wait
streamjobs enqueue pages.fetch --arg url=https://example.org --arg depth=2 -Q web
streamjobs enqueue --file jobs.ndjson
streamjobs stats
streamjobs stats web mail --json
streamjobs stats --watch
streamjobs stats web --by kind --window 1h
streamjobs stats --by worker
streamjobs stats --assert 'oldest<60s,dead<100'
streamjobs queue list
streamjobs queue show web
streamjobs queue pause reports
streamjobs queue resume reports
streamjobs queue purge mail --kind mail.send --since 2h --dry-run
streamjobs queue delete mail --dry-run
streamjobs queue limit web
streamjobs queue limit web --rate 100/s --concurrency 20
streamjobs queue limit web --kind pages.fetch --key host --concurrency 2
streamjobs workers list -Q web
streamjobs workers show a1b2c3d4
streamjobs workers quiet a1b2c3d4
streamjobs workers quiet --all --undo
streamjobs workers stop --all
streamjobs workers prune --dry-run
streamjobs job list
streamjobs job list -Q web --state waiting --kind pages.fetch --since 1h
streamjobs job show mail:1764412345678-0
streamjobs job wait mail:1764412345678-0 --timeout 10m
streamjobs job cancel mail:1764412345678-0 mail:d1764412345680-0
streamjobs job run-now mail:d1764412345680-0
streamjobs job reschedule mail:d1764412345680-0 --delay 2h
streamjobs dead list -Q mail --class timeout --since 4h
streamjobs dead groups -Q mail --since 4h
streamjobs dead show mail:1764412345678-0
streamjobs dead replay -Q mail --error TimeoutError --since 4h --rate 20/s --dry-run
streamjobs dead purge -Q mail --until 30d --dry-run
streamjobs dead export -Q mail > dead.ndjson
streamjobs dead import dead.ndjson
streamjobs cron list -Q reports
streamjobs cron next nightly -A jobs:app --after 2026-03-28T00:00:00Z
streamjobs cron run nightly
streamjobs cron pause nightly
streamjobs cron resume nightly
streamjobs doctor
streamjobs doctor --role producer --strict
streamjobs exporter --port 9090 --url redis://cache-1:6379/0
streamjobs bench list
streamjobs bench run enqueue drain --quick --out before.json --charts charts
streamjobs bench compare before.json after.json
streamjobs bench peers
streamjobs bench peers arq rq --quick
streamjobs lua list
streamjobs lua show retry
streamjobs lua path
eval "$(streamjobs completion bash)"
eval "$(streamjobs completion zsh)"
streamjobs completion fish > ~/.config/fish/completions/streamjobs.fish
streamjobs demo
streamjobs demo --files 300 --folder seen
""".strip().splitlines()


def of(command: str) -> list[str]:
    """Return the examples of a command by its whole name, such as `streamjobs dead list`."""
    return [line for line in LINES if f"{command} " in f"{line} "]
