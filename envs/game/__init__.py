"""The game itself: rules, referee and records. It knows nothing of learning."""
