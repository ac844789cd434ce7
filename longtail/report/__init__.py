"""What people look at: tables, charts, pictures and pages, in the terminal, as HTML, SVG or Markdown."""
