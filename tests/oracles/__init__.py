"""Known answers: every method as a plain loop over clients, written from its paper, and the tests that compare."""
