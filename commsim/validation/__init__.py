"""Does what commsim predicts agree with what others measured? One file a noun."""
