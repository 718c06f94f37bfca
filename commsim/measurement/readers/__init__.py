"""How does each tool write what it measured? One file a format."""
