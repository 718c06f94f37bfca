"""What did each rank do, and when? One file a format, one value for each thing that a trace can know."""
