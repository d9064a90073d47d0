"""taskiq over a Redis stream."""

from taskiq_redis import RedisStreamBroker

from .base import URL, main
from .taskiq_ways import ways

broker = RedisStreamBroker(URL)
add, drain = ways(broker, "adapters.taskiq_stream_jobs:broker")

if __name__ == "__main__":
    main(add_awaited=add, drain=drain)
