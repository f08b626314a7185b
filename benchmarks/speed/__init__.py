"""Speed: ratios of things measured in the same run."""
