"""The Ray actors of the memory: thin shells around the pure classes of ``memory``."""
