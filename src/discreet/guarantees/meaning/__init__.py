"""What a guarantee means for people: odds, the best attack, households, in words and as a picture."""
