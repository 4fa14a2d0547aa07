"""Charts as plain values: where everything stands, in percent of the width. Templates draw them as SVG."""
