"""What does ``python -m memory`` run? The command line."""

import sys

from memory.cli import main

if __name__ == "__main__":
    sys.exit(main())
