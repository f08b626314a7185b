"""Speed benchmarks. They report ratios, because absolute times vary between machines and over time."""
