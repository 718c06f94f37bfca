"""How do real collectives get measured? Cases, the ranks that run them, and the watch over those ranks."""
