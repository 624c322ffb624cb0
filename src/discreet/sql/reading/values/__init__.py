"""What the values of a question can be: from the declarations, and from what the question says about them."""
