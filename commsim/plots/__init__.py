"""What does a value look like? Figures of what was computed elsewhere, one file a noun; nothing is computed here."""
