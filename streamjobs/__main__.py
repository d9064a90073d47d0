"""`python -m streamjobs` is the command line."""

from streamjobs.cli.main import main

main()
