"""Pages of the machine's half: views (thin), pages (typed contexts) and forms. Nothing below imports it."""
