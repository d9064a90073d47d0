"""Start the runner: `python -m tests.faults.mutants`."""

import sys

from tests.faults.mutants.run import main

sys.exit(main())
