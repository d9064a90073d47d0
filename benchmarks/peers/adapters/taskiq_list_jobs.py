"""taskiq over a Redis list."""

from taskiq_redis import ListQueueBroker

from .base import URL, main
from .taskiq_ways import ways

broker = ListQueueBroker(URL)
add, drain = ways(broker, "adapters.taskiq_list_jobs:broker")

if __name__ == "__main__":
    main(add_awaited=add, drain=drain)
