"""What do slow ranks, slow links and jitter do to a step?"""
