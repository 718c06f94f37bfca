"""Why were the steps of a real job slow? What if nobody had been late?"""
