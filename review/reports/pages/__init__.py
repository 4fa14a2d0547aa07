"""Page objects of runs and their figures."""
