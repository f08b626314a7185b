"""Data whose clients are real sites, people, schools and planes."""
