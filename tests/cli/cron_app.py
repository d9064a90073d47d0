"""An app with crons, for the tests of the command line."""

from streamjobs import StreamJobs

app = StreamJobs("memory://cli-tests")


@app.cron("30 2 * * *", tz="Europe/Berlin", name="nightly", args={"region": "eu"}, catch_up="all", jitter=60)
@app.every(3600, name="hourly", args={"region": "us"})
@app.job(name="report", queue="reports")
async def report(region: str) -> str:
    return f"report of {region}"
