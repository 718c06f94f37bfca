"""Why does one step take longer than another: than was measured, than on another machine, than it could?"""
