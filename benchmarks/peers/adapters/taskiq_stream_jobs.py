"""taskiq over a Redis stream."""

from taskiq_redis import RedisStreamBroker

from .base import URL, main
from .taskiq_ways import ways

broker = RedisStreamBroker(URL)
noop, adding, work = ways(broker, "adapters.taskiq_stream_jobs:broker")

if __name__ == "__main__":
    main(**adding, drain=work)
