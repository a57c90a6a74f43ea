"""What people look at and hand on: tables, figures, pages, and the folder that holds them all."""
