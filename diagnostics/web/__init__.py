"""What every console page is made of: access, frame, filter bar, charts."""
