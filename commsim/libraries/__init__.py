"""Who chooses the algorithm, and how long does it take?"""
