"""Who sends which tokens to which experts, and what does that ask of the machine?"""
