"""What pages of the console cost: first byte, bytes, nodes, queries."""
