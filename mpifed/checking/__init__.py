"""Checks of a class against what it says of itself, on a small study."""
