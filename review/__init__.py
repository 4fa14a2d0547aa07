"""The human half: what experts say, how far the judge agrees with them, and everything made of both."""
