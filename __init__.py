"""Retinue: train, compare and supply bots for a four-seat race-and-capture game."""

__version__ = "0.1.0"
