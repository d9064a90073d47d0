"""An app with a secret, for the tests of what is not shown."""

from streamjobs import Permanent, StreamJobs

app = StreamJobs("memory://cli-secrets")


@app.cron("0 3 * * *", name="nightly", args={"user": "ada", "password": "s3cret"})
@app.job(name="secret.open", queue="safe", redact=("password", "pin"))
async def open_(user: str, password: str, pin: int = 0) -> None:
    """Die."""
    raise Permanent("no")


@app.job(name="secret.none", queue="safe")
async def none(password: str) -> None:
    """Have the same argument, and no secret."""
    raise Permanent("no")
