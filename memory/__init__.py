"""Long-term memory for an agent daemon over a folder of markdown files."""

import logging

__version__ = "0.1.0"

logging.getLogger("memory").addHandler(logging.NullHandler())
