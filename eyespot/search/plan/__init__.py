"""What a collection of any size would need: slopes measured on one machine, and the arithmetic over them."""
