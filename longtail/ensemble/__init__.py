"""Several models as one: their candidates, what makes scores comparable, and what fuses them."""
