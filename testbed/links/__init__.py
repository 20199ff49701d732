"""One-way delay and loss: drawn by the sender, held before the receiver."""
