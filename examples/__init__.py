"""Small systems under test over the demo corpus: a service, a program, a function. Standard library only."""
