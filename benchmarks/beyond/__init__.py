"""Beyond the papers: all algorithms on the same problems, and the tuning of their step sizes."""
