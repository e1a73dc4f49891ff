"""What keeps a memory from working well, and what helps (``memory doctor``)?"""
