"""What pages read of runs."""
