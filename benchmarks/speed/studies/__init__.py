"""What was measured once, for a page of docs/. Each program runs as those of benchmarks.speed do."""
