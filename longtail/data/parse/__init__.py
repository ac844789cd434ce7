"""What formats are read with: lines, JSON, CSV, Arrow, sparse text, labels, and the builder of points."""
