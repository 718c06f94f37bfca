"""How is a measurement written so that other tools read it?"""
