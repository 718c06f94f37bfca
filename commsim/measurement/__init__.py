"""What did the machine say? Tables of measured collectives, whoever wrote them, as values of one kind."""
