"""BullMQ on Node; `bullmq_node.cjs` does what `base.py` and an adapter do elsewhere."""

import json
import os
import sys
from pathlib import Path

from .base import CALLERS, FAST, PACE_NS, PORTION, TEXT, TIMED, TIMER_NS, URL

TERMS = {
    "url": URL,
    "fast": FAST,
    "timed": TIMED,
    "text": TEXT,
    "callers": CALLERS,
    "portion": PORTION,
    "paceNs": PACE_NS,
    "timerNs": TIMER_NS,
}

if __name__ == "__main__":
    os.environ["NODE_PATH"] = str(Path(sys.prefix) / "node_modules")
    program = str(Path(__file__).with_name("bullmq_node.cjs"))
    os.execvp("node", ["node", program, *sys.argv[1:], json.dumps(TERMS)])
