"""Players: whatever chooses turns, scripted, searching or learned."""
