"""Page objects of the reviewer's screens: card, reveal, past ratings."""
