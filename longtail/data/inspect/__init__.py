"""What `longtail inspect` counts; `report/` shows it."""
