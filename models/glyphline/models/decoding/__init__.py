"""From network outputs to text: greedy and beam search for both heads, n-best, confidence and places."""
