"""OpenTelemetry traces as questions and answers, from a file or received by OTLP.

``otlp`` parses traces; ``importing`` samples, masks and stores them."""
