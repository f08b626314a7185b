"""mpifed beside other people's programs: a file for each group of methods, and the page of all their rows."""
