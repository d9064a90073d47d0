"""Connections to the server, and the executors that run requests on them. The only importer of redis."""

from streamjobs.client.connect import Connections
from streamjobs.client.target import DEFAULT_URL, Target, parse_url, redact

__all__ = ["DEFAULT_URL", "Connections", "Target", "parse_url", "redact"]
