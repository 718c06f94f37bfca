"""What do ranks do together, and what must move?"""
