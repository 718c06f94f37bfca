"""What does a real network, laid out on this machine, deliver? Predicted beside measured, one file a noun."""
