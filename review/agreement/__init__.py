"""Agreement of a run's judges with experts, and variation between repeated judgements."""
