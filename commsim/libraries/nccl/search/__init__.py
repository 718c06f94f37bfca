"""Which channels does NCCL find on a machine? Its search, on the graph that it sees."""
