"""What is joined to what, and how fast?"""
