"""What `longtail inspect` counts and shows."""
