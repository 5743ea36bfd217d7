"""Matches between agents, and what they say about the agents' strength."""
