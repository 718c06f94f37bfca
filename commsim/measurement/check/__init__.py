"""Is a measured collective right for its machine, and if not, why?"""
