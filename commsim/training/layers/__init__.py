"""What is a layer made of? One file for each part that can stand in it."""
