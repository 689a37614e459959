"""Parts of rule recovery: what is asked of the model, what the data say, and what is concluded from both."""
