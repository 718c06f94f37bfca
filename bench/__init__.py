"""What does this machine deliver? Programs that measure: started as processes, never imported by commsim."""
