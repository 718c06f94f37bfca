"""Which constants of a library do measurements of a user's own machine give?"""
