"""How well does the memory find what is known to be relevant?"""
