"""Release difference: two runs that answered the same questions, compared by ratings of the changed answers alone."""
