"""How do values become rows, for people with a DataFrame and for programs?"""
