"""What pages of the machine's half show, as frozen values."""
