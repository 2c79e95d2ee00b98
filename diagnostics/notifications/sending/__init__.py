"""Ways to send a notification: each takes its row and gives what the receiver answered."""
