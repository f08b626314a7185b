"""The room of graphs."""
