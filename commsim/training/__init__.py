"""What does a step compute and say, and how long does it take?"""
