"""The agent run that files a remembered fact: handler, model, tools, limits (SPEC A6)."""
