"""What no paper shows: every algorithm on the same problem, and how its step was chosen."""
