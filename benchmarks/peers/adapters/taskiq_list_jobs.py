"""taskiq over a Redis list."""

from taskiq_redis import ListQueueBroker

from .base import URL, main
from .taskiq_ways import ways

broker = ListQueueBroker(URL)
noop, adding, work = ways(broker, "adapters.taskiq_list_jobs:broker")

if __name__ == "__main__":
    main(**adding, drain=work)
