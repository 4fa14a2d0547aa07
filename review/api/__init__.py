"""REST of the human half: serializers write the answers, requests read the bodies. An entrance."""
