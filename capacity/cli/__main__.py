"""Run the command as ``python -m capacity.cli``."""

from capacity.cli import main

main()
