"""Which file says what a model is, and how is it read?"""
