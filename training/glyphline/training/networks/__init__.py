"""Networks from pixels to symbols, in torch: a convolutional-recurrent encoder and two heads, CTC and attention."""
