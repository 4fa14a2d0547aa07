"""Page objects of the reviewer's screens."""
