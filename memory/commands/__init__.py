"""What does a command know about how it was called?"""

from memory.commands.options import Options

__all__ = ["Options"]
