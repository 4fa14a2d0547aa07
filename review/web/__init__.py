"""Pages of the human half: views (thin), pages (typed contexts) and forms. Nothing below imports it."""
